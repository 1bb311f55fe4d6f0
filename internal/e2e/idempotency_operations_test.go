package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure duplicates of every other keyed operation that meet in the middle of the winner's transaction, at two
// instances, have the effect of one request and equal answers: also where they come with a version that the winner makes
// stale.
//
// Standard: litespec/ext/concurrency#replay-completed-results
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyEveryKeyedOperationHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, o := range testkit.Operations(t) {
		if !o.Keyed || o.ID == "place-order" {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			testkit.MarkGoroutines(t)
			s := openShop(t)
			s.StartWorker(t)
			alone, met := s.request(o), s.request(o)
			s.settled() // a late event of the provider would add its job to one of the footprints
			s.StopWorker(t)

			before := s.footprint()
			requireAccepted(t, alone.send(s.alice, "alone", "If-Match", alone.tag(t, s.alice)))
			s.book(alone)
			between := s.footprint()

			tag := met.tag(t, s.alice)
			held := s.Begin(t)
			for _, table := range []string{"orders", "payments", "stock"} {
				held.Exec(`SELECT FROM ` + table + ` FOR UPDATE`)
			}
			callers := []*testkit.Caller{s.alice, s.Another(t).As(t, "alice")}
			answers := testkit.Together(20, func(i int) testkit.Answer { return met.send(callers[i%2], "k", "If-Match", tag) })
			testkit.AwaitGoroutines(t, atTheGate, 18)
			s.AwaitBlockedOn(t, "FOR UPDATE")
			held.Commit()
			requireOneWinner(t, testkit.Receive(answers, 20))
			s.book(met)
			require.Equal(t, difference(before, between), difference(between, s.footprint()), "twenty duplicates, and one request")
		})
	}
}

// footprint is what writes leave behind: the versions and rows of all aggregates, the units on hand, keys and jobs.
func (s shop) footprint() (all []int64) {
	s.t.Helper()
	for _, sum := range []string{
		`sum(version) FROM orders`, `sum(version) FROM payments`, `sum(version) FROM products`, `sum(version) FROM stock`,
		`sum(on_hand) FROM stock`, `sum(amount) FROM refunds`, `count(*) FROM idempotency_keys`, `count(*) FROM river_job`,
	} {
		all = append(all, queryValue[int64](s, `SELECT coalesce((SELECT `+sum+`), 0)::bigint`))
	}
	return all
}

func difference(before, after []int64) (changed []int64) {
	for i := range before {
		changed = append(changed, after[i]-before[i])
	}
	return changed
}

func requireAccepted(t *testing.T, a testkit.Answer) {
	t.Helper()
	require.Equal(t, 2, a.Status/100, string(a.Body))
}
