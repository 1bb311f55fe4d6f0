// Command mutation changes the code in small ways, one at a time, and requires that a test fails for each: an operator
// becomes another one, a condition its opposite, a number one more, a call or an error is left out. A mutant that no test
// fails for has survived: either a test is missing, or docs/mutation.md says why none is needed. See `make mutation`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// target is files, and the tests that are run for a mutant of them: one after another, until one fails.
type target struct {
	files string // a pattern
	tests [][]string
}

// targets are the rules of the domain, the pipeline with its use cases, the boundary and the provider's gateway. The models
// explore the use cases of orders and payments; those that they leave out have tests of the whole service, which are slow and
// so come last. For what PostgreSQL decides, see planted.
var targets = []target{
	{"internal/domain/currency.go", [][]string{{"./internal/domain", "-rapid.nofailfile"}, service("Currencies")}},
	{"internal/domain/*.go", [][]string{{"./internal/domain", "-rapid.nofailfile"}, models}},
	{"internal/app/product_commands.go", [][]string{{"./internal/app"}, service("Product|Stock|Adjustment")}},
	{"internal/app/reconcile.go", [][]string{{"./internal/app"}, models, service("Reconcile")}},
	{"internal/app/unmatched.go", [][]string{{"./internal/app"}, models, service("Reconcile.*Return|Reconcile.*Charge")}},
	{"internal/app/*settle*.go", [][]string{{"./internal/app"}, models, service("Events|Reconcile")}},
	{"internal/app/provider*.go", [][]string{{"./internal/app"}, models, service("Events")}},
	{"internal/app/*refund*.go", [][]string{{"./internal/app"}, models, service("Refund")}},
	{"internal/app/order_commands.go", [][]string{{"./internal/app"}, models, service("Shipment|Address|Cancellation")}},
	{"internal/app/place_order.go", [][]string{{"./internal/app"}, models, service("PlaceOrder|Contract|Prices")}},
	{"internal/app/*.go", [][]string{{"./internal/app"}, models, service("Payment|Idempotency|Pages|Lists")}},
	{"internal/httpapi/*.go", [][]string{{"./internal/httpapi"}}},
	{"internal/infra/stripegateway/*.go", [][]string{{"./internal/infra/stripegateway"}}},
}

var models = []string{"-short", "./internal/model"}

// service is the tests of the whole service whose names match.
func service(names string) []string {
	return []string{"./internal/e2e", "-run", "^Test.*(" + names + ")"}
}

// testLimit bounds the tests of one mutant: one that never ends is found.
const testLimit = "10m"

type outcome string

const (
	killed    outcome = "killed"
	survived  outcome = "survived"
	unviable  outcome = "does not compile"
	explained outcome = "survived, as docs/mutation.md explains"
)

func main() {
	seconds := flag.Int("seconds", 300, "how long to try mutants; 0: all of them")
	seed := flag.Uint64("seed", 1, "the seed of the order in which they are tried")
	only := flag.String("only", "", "a part of the paths of the files to change")
	plant := flag.Bool("planted", false, "first plant the faults that are written down, and require that their tests find them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := mutate(ctx, os.Stdout, *plant, time.Duration(*seconds)*time.Second, *seed, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func mutate(ctx context.Context, out io.Writer, plant bool, limit time.Duration, seed uint64, only string) error {
	if plant {
		found, err := findPlanted(ctx, out)
		if err != nil {
			return err
		}
		if found < len(faults) {
			return errors.New("a planted fault was not found")
		}
	}
	return run(ctx, out, limit, seed, only)
}

// work is one mutant and its tests.
type work struct {
	mutant
	tests [][]string
}

// run tries mutants, in an order that the seed decides, until the time is over.
func run(ctx context.Context, out io.Writer, limit time.Duration, seed uint64, only string) error {
	all, err := collect(only)
	if err != nil {
		return err
	}
	known, err := os.ReadFile("docs/mutation.md")
	if err != nil {
		return fmt.Errorf("read the list of survivors: %w", err)
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	counts := map[outcome]int{}
	tried := 0
	for began := time.Now(); tried < len(all) && ctx.Err() == nil && (limit == 0 || time.Since(began) < limit); tried++ {
		w := all[tried]
		o, err := w.try(ctx)
		if err != nil {
			return err
		}
		if o == survived && strings.Contains(string(known), w.key()) {
			o = explained
		}
		counts[o]++
		if o == survived {
			fmt.Fprintf(out, "SURVIVED %s:%d\n| %s | |\n", w.file, w.number, w.key())
		}
	}
	fmt.Fprintf(out, "%d of %d mutants tried (seed %d): %d killed, %d survived, %d survive for a reason, %d do not compile\n",
		tried, len(all), seed, counts[killed], counts[survived], counts[explained], counts[unviable])
	if counts[survived] > 0 {
		return errors.New("mutants survived for no reason that docs/mutation.md gives")
	}
	return nil
}

// collect lists the mutants of all files. A file belongs to the first target that names it.
func collect(only string) (all []work, err error) {
	seen := map[string]bool{}
	for _, t := range targets {
		files, err := filepath.Glob(t.files)
		if err != nil {
			return nil, fmt.Errorf("find files: %w", err)
		}
		for _, file := range files {
			if seen[file] || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".gen.go") || !strings.Contains(file, only) {
				continue
			}
			seen[file] = true
			mutants, err := mutantsOf(file)
			if err != nil {
				return nil, err
			}
			for _, m := range mutants {
				all = append(all, work{m, t.tests})
			}
		}
	}
	return all, nil
}

// try runs the tests with the change laid over the file, which itself stays as it is.
func (w work) try(ctx context.Context) (outcome, error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	changed, err := w.apply()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(w.file)
	if err != nil {
		return "", fmt.Errorf("find file: %w", err)
	}
	replacement, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	for path, content := range map[string][]byte{replacement: changed, overlay: list} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", fmt.Errorf("write mutant: %w", err)
		}
	}
	for _, tests := range w.tests {
		arguments := append([]string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", testLimit}, tests...)
		said, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput()
		switch {
		case err == nil:
		case strings.Contains(string(said), "[build failed]") || strings.Contains(string(said), "[setup failed]"):
			return unviable, nil
		default:
			return killed, ctx.Err()
		}
	}
	return survived, ctx.Err()
}
