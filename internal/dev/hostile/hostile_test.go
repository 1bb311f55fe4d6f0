// Package hostile attacks the running service with requests made from the contract: for each operation, every single
// fault that a parameter, a header or a member of the body can have, and then many at once, at random. Each answer must
// be one that the contract documents, and what is refused must change nothing. An operation that is added to the contract
// is attacked without a word here.
//
// `make hostile` runs it for longer. A violation is printed with its seed and as a curl line.
package hostile

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
)

var (
	seconds = flag.Int("seconds", 3, "how long to send faults at random, after all single ones")
	seed    = flag.Uint64("seed", 1, "the seed of what is sent at random; 0: a new one")
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Ensure that what the contract says holds for whatever is sent: the status, the headers and the body of every answer are
// documented, no refusal claims a key or changes a row, and nothing is answered with a 5xx.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestHostileRequests(t *testing.T) { //nolint:paralleltest // it compares the whole database before and after
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	w := openWorld(t, *seed)
	began := time.Now()
	w.tryMethods()
	cases := 0
	for _, op := range w.operations {
		cases += w.exhaust(op)
	}
	t.Logf("seed %d: %d single faults in %s", w.seed, cases, time.Since(began).Round(time.Millisecond))
	cases = w.storm(time.Duration(*seconds) * time.Second)
	t.Logf("seed %d: %d requests with faults at random in %d s", w.seed, cases, *seconds)
	w.report()
	w.settle()
	testkit.CheckRest(t, w.Service)
}

// tryMethods sends every method to every path. Those that the contract does not have are refused, and Allow lists the others.
func (w *world) tryMethods() {
	w.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(w.doc.Paths.Map())) {
		declared := slices.Sorted(maps.Keys(w.doc.Paths.Value(path).Operations()))
		if slices.Contains(declared, http.MethodGet) {
			declared = append(declared, http.MethodHead)
		}
		slices.Sort(declared)
		of := w.operations[slices.IndexFunc(w.operations, func(op *operation) bool { return op.path == path })]
		base := w.good(of)
		for _, method := range methods() {
			if slices.Contains(declared, method) {
				continue
			}
			q := base.clone()
			q.method = method
			a := w.send(&operation{id: "none", method: "GET"}, q, "method "+shorten(method), refusal(http.StatusMethodNotAllowed, "method_not_allowed"))
			allowed := strings.Split(a.header.Get("Allow"), ", ")
			slices.Sort(allowed)
			if a.status == http.StatusMethodNotAllowed {
				require.Equal(w.t, declared, allowed, "%s %s", shorten(method), path)
			}
		}
	}
}

// exhaust tries each single fault of an operation. The faulty requests have one key and one tag, which afterwards must be
// as good as new.
func (w *world) exhaust(op *operation) (cases int) {
	w.t.Helper()
	base := w.good(op)
	for _, f := range faultsOf(op) {
		q := base.clone()
		f.apply(&q)
		if a := w.send(op, q, f.name, f.want); a.status < 300 && !op.safe() {
			require.Empty(w.t, a.header.Get("Idempotent-Replayed"), "%s, %s: a refused request has claimed its key", op.id, f.name)
			base = w.good(op)
		}
		cases++
	}
	first := w.send(op, base, "nothing is wrong", want{verdict: good})
	require.Less(w.t, first.status, 300, "%s does not take a good request: teach world.good what it needs: %s", op.id, first.body)
	require.Empty(w.t, first.header.Get("Idempotent-Replayed"), op.id)
	if op.keyed {
		w.repeat(op, base, first)
	}
	return cases
}

// repeat sends an accepted request again, which replays it, and then another request under its key, which is refused.
func (w *world) repeat(op *operation, q request, first answer) {
	w.t.Helper()
	again := w.send(op, q, "the same again", want{verdict: good})
	require.Equal(w.t, "true", again.header.Get("Idempotent-Replayed"), op.id)
	require.Equal(w.t, first.status, again.status, op.id)
	require.Equal(w.t, string(first.body), string(again.body), op.id)
	for _, name := range []string{"ETag", "Location", "Content-Type"} {
		require.Equal(w.t, first.header.Get(name), again.header.Get(name), "%s %s", op.id, name)
	}
	for _, f := range memberFaults(op) {
		other := q.clone()
		f.apply(&other)
		if f.want.verdict == good && string(other.body) != string(q.body) {
			a := w.send(op, other, "the key again, and "+f.name, want{})
			if a.status < 300 { // an absent member and an empty one can mean the same
				require.Equal(w.t, "true", a.header.Get("Idempotent-Replayed"), "%s, %s: one key was accepted twice", op.id, f.name)
			}
		}
	}
}

// storm sends requests with several faults, chosen at random, and bytes changed at random.
func (w *world) storm(length time.Duration) (cases int) {
	w.t.Helper()
	dice := rand.New(rand.NewPCG(w.seed, 0))
	faults := map[*operation][]fault{}
	for _, op := range w.operations {
		faults[op] = faultsOf(op)
	}
	for began := time.Now(); time.Since(began) < length; cases++ {
		op := w.operations[dice.IntN(len(w.operations))]
		q := w.good(op)
		var names []string
		for range 1 + dice.IntN(3) {
			f := faults[op][dice.IntN(len(faults[op]))]
			if dice.IntN(4) == 0 {
				f = noise(dice)
			}
			f.apply(&q)
			names = append(names, f.name)
		}
		if op.safe() && dice.IntN(3) == 0 {
			q.method = http.MethodHead
		}
		w.send(op, q, fmt.Sprintf("case %d: %s", cases, strings.Join(names, " + ")), want{})
	}
	return cases
}

// noise changes a few bytes of the body, of the target or of a header.
func noise(dice *rand.Rand) fault {
	where, seed := dice.IntN(3), dice.Uint64()
	return fault{"noise " + strconv.FormatUint(seed, 16), func(q *request) {
		dice := rand.New(rand.NewPCG(seed, 1))
		switch {
		case where == 0 && len(q.body) > 0:
			q.body = scramble(dice, q.body, 0, 256)
		case where == 1:
			q.target = string(scramble(dice, []byte(q.target), '!', '~'-'!'+1))
		case len(q.header) > 0:
			i := dice.IntN(len(q.header))
			q.header[i].value = string(scramble(dice, []byte(q.header[i].value), ' ', '~'-' '+1))
		}
	}, want{}}
}

// scramble replaces, inserts and removes up to four bytes; new ones are of the alphabet that begins at first.
func scramble(dice *rand.Rand, text []byte, first, alphabet int) []byte {
	for range 1 + dice.IntN(4) {
		at, b := dice.IntN(len(text)+1), byte(first+dice.IntN(alphabet))
		switch what := dice.IntN(3); {
		case what == 0 || at == len(text):
			text = slices.Insert(text, at, b)
		case what == 1:
			text[at] = b
		default:
			text = slices.Delete(text, at, at+1)
		}
	}
	return text
}

// report tells what was met, and which documented statuses were not.
func (w *world) report() {
	var b strings.Builder
	for _, op := range w.operations {
		fmt.Fprintf(&b, "\n  %-26s", op.id)
		for _, status := range slices.Sorted(maps.Keys(w.seen[op.id])) {
			fmt.Fprintf(&b, " %d:%d", status, w.seen[op.id][status])
		}
		responses := w.doc.Paths.Value(op.path).Operations()[op.method].Responses.Map()
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			if n, _ := strconv.Atoi(status); w.seen[op.id][n] == 0 && n < 500 {
				fmt.Fprintf(&b, " (not met: %s)", status)
			}
		}
	}
	b.WriteString("\n ")
	for _, code := range slices.Sorted(maps.Keys(w.codes)) {
		fmt.Fprintf(&b, " %s:%d", code, w.codes[code])
	}
	w.t.Log(b.String())
}
