// Package chaos attacks the service with machines that do not know the answer: clients that place, change, cancel, ship,
// refund, adjust and retry at random, and a nemesis that kills, pauses, cuts and lies meanwhile. Afterwards everything is
// healed, and what the clients saw is checked: `make chaos`.
//
// The decisions of the clients and of the nemesis come from the seed, so a seed that failed can be run again. When a
// process is scheduled and a message arrives does not: the same seed need not meet the same moment again.
package chaos

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

const (
	clients = 6
	// quietTime bounds the wait until nothing is open any more: the pauses between a job's attempts double.
	quietTime = 2 * time.Minute
	// settleTime is how long a request can still be at work in the service when all is healed.
	settleTime = 6 * time.Second
)

var (
	seconds = flag.Int("seconds", 0, "how long the nemesis rages; 0: not at all")
	seed    = flag.Uint64("seed", 0, "the seed of all decisions; 0: a new one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := testkit.RemoveBinaries(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Ensure the service keeps its promises under everything that the nemesis does.
func TestChaos(t *testing.T) { //nolint:paralleltest // it needs the machine for itself
	if *seconds == 0 {
		t.Skip("run it by `make chaos`")
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	t.Logf("seed %d, %d s", *seed, *seconds)
	var w *world
	var n *nemesis
	ran := t.Run("run", func(t *testing.T) {
		w = startWorld(t)
		n = &nemesis{world: w, dice: dice(0), done: map[string]int{}}
		callers := w.attack(n)
		n.quieten()
		w.resolve(callers)
		n.quieten()
		w.addDeclines()
		w.narrow()
		w.checkBooks(t)
	})
	if w == nil || n == nil {
		return
	}
	for _, check := range []func([]*operation) (broken, undecided []string){checkOrders, checkStock} {
		broken, undecided := check(w.history)
		w.broken = append(w.broken, broken...)
		for _, id := range undecided {
			t.Logf("not decided in time: whether the history of %s is linearizable", id)
		}
	}
	t.Log(n.report())
	for _, v := range w.broken {
		t.Error(v)
	}
	if !ran || len(w.broken) > 0 {
		t.Logf("make chaos SECONDS=%d SEED=%d; history and logs are in %s", *seconds, *seed, keep(t, w, n))
	}
}

// dice are a source of decisions of their own for each actor.
func dice(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, actor)) }

// attack lets clients and nemesis work at once, until the time is over and all is healed.
func (w *world) attack(n *nemesis) (callers []*client) {
	over := make(chan struct{})
	var working sync.WaitGroup
	for i := range clients {
		token, err := w.Sandbox.Token(fmt.Sprintf("client-%d", i), "default", testkit.AllScopes+" orders:admin", time.Hour)
		require.NoError(w.t, err)
		c := &client{
			world: w, id: i, dice: dice(uint64(i) + 1), token: token, over: over,
			http: &http.Client{Timeout: clientTimeout, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}},
		}
		callers = append(callers, c)
		working.Go(c.work)
	}
	n.rage(time.Duration(*seconds) * time.Second)
	close(over)
	working.Wait()
	return callers
}

// open is what is undecided here, or waits for a job.
var open = []string{
	`payments WHERE status = 'pending'`, `refunds WHERE status = 'pending'`, `unmatched_charges WHERE refund_id = ''`,
	`river_job WHERE finalized_at IS NULL AND queue = 'default'`,
}

// quieten waits until nothing is open, while the provider decides what it has left open.
func (n *nemesis) quieten() {
	<-time.After(settleTime)
	quiet := until(quietTime, func() bool {
		n.finishProcessing()
		n.repair(time.Now())
		return !slices.ContainsFunc(open, func(from string) bool { return n.count(from) != 0 })
	})
	n.look()
	for _, from := range open {
		if left := n.count(from); !quiet && left != 0 {
			n.violation("not quiet %s after healing: %d of %s", quietTime, left, from)
		}
	}
	if lost := n.count(`river_job WHERE state IN ('discarded', 'cancelled') AND queue = 'default'`); lost != 0 {
		n.violation("%d jobs were given up", lost)
	}
}

// resolve asks for the answer of every keyed operation again, and reads every order and stock for the last time.
func (w *world) resolve(callers []*client) {
	for _, o := range slices.Clone(w.history) {
		if o.Key != "" && (o.accepted() || o.Unknown) {
			callers[o.Client].resolve(o)
		}
	}
	ids := map[string]bool{}
	for _, o := range slices.Clone(w.history) {
		if o.Kind == "place" && o.accepted() {
			if ids[o.Order] {
				w.violation("two keys were answered with the order %s", o.Order)
			}
			ids[o.Order] = true
			callers[0].readOrder(&placed{id: o.Order})
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(skus)) {
		callers[0].ask(&operation{Kind: "stock", SKU: sku}, "/v1/products/"+sku+"/stock")
	}
	if stored := w.count("orders"); stored != len(ids) {
		w.violation("%d orders are stored for %d accepted keys", stored, len(ids))
	}
}

// addDeclines adds to the history what the service did by itself: it cancelled the orders whose payment failed.
func (w *world) addDeclines() {
	declined := map[string]int64{} // not before
	for _, o := range w.history {
		if o.Kind == "read" && o.first.Text("cancellation.reason") == "payment_failed" {
			at, _ := time.Parse(time.RFC3339, o.first.Text("cancellation.cancelled_at")) // as the contract says
			declined[o.Order] = int64(at.Sub(w.began.Round(0)) - time.Millisecond)
		}
	}
	for _, o := range slices.Clone(w.history) {
		if from, ok := declined[o.Order]; ok && o.Kind == "place" {
			w.history = append(w.history, &operation{
				Client: clients, Kind: "decline", Order: o.Order, Sold: o.Sold, Call: max(o.Call, from), Return: w.now(), Status: 200,
			})
		}
	}
}

// narrow ends each operation where its effect was seen at the latest.
func (w *world) narrow() {
	for _, o := range w.history {
		id := o.Order
		if o.Kind == "cancel" || o.Kind == "decline" {
			id = "cancelled " + id
		} else if o.Kind != "place" {
			continue
		}
		if at := w.seen[id]; o.accepted() && at > 0 {
			o.Return = max(o.Call, min(o.Return, at))
		}
	}
}

// checkBooks compares stock, orders, payments and the provider's ledger.
func (w *world) checkBooks(t *testing.T) {
	t.Helper()
	for _, o := range w.history {
		if o.Kind == "adjust" && o.accepted() {
			w.Stocked(t, "default", o.SKU, o.Delta)
		}
	}
	for _, c := range w.Sandbox.Ledger().Charges {
		if c.Status == "succeeded" && w.Count(t, `payments WHERE order_id = $1 AND charge_id = $2`, c.OrderID, c.ID) != 1 {
			w.violation("the provider holds the charge %s of order %s, and no payment does", c.ID, c.OrderID)
		}
	}
	testkit.CheckBooks(t, w.Service)
}

// report is what happened, in figures.
func (n *nemesis) report() string {
	sent, retries, replays, problems := 0, 0, 0, map[string]int{}
	var answered []int64
	for _, o := range n.history {
		sent += o.Attempts
		retries += max(0, o.Attempts-1)
		replays += o.replays
		if o.Code != "" {
			problems[o.Code]++
		}
		if o.Return < int64(*seconds)*int64(time.Second) {
			answered = append(answered, o.Return)
		}
	}
	slices.Sort(answered)
	var stall, last int64
	for _, at := range answered {
		stall, last = max(stall, at-last), at
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d operations, %d orders, %d requests, %d retries, %d replays, %d version conflicts, longest stall %s\n",
		*seed, len(n.history), len(n.orders), sent, retries, replays, problems["version_conflict"], time.Duration(stall).Round(time.Millisecond))
	for _, of := range []map[string]int{n.done, problems} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			fmt.Fprintf(&b, "  %s: %d", name, of[name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// keep writes what explains a violation into a folder that stays.
func keep(t *testing.T, w *world, n *nemesis) string {
	t.Helper()
	dir, err := os.MkdirTemp("", fmt.Sprintf("orders-chaos-%d-", *seed))
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"history.jsonl": written(w.history), "nemesis.txt": []byte(strings.Join(n.diary, "\n")),
		"violations.txt": []byte(strings.Join(w.broken, "\n")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	require.NoError(t, w.keepLogs(dir))
	return dir
}
