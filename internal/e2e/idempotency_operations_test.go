package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure duplicates of every other keyed operation that meet in the middle of the winner's transaction, at two
// instances, have one effect and equal answers: cancel-order too, whose duplicates come with a version that the winner
// makes stale.
//
// Standard: litespec/ext/concurrency#replay-completed-results
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyEveryKeyedOperationHasOneEffect(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, path, body string
		hold             string // what its transaction waits for
		effect           string // counts what it does
	}{
		{
			"cancel-order", "/v1/orders/{id}/cancellation", `{"reason":"mistake"}`, `SELECT FROM orders FOR UPDATE`,
			`refunds WHERE reason = 'mistake' AND amount = 3998`,
		},
		{
			"refund-order", "/v1/orders/{id}/refunds", `{"amount":{"amount":100,"currency":"EUR"}}`,
			`SELECT FROM payments FOR UPDATE`, `refunds WHERE amount = 100`,
		},
		{
			"adjust-stock", "/v1/products/TEA-001/stock-adjustments", `{"delta":5}`, `SELECT FROM stock FOR UPDATE`,
			`stock WHERE on_hand = 10 - 2 + 5`,
		},
	}
	requireAll(t, func(o testkit.Operation) bool { return o.Keyed && o.ID != "place-order" }, len(cases),
		func(i int) string { return cases[i].name })
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startPatient(t)
			s.StartWorker(t)
			alice := s.As(t, "alice")
			order := place(alice, "placing", tea())
			requirePlaced(t, order)
			alice.PaymentStatus(order.Text("id"), "succeeded")
			s.StopWorker(t)

			held := s.Begin(t).Exec(c.hold)
			if c.name == "adjust-stock" {
				s.Stocked(t, "default", "TEA-001", 5)
			}
			callers := []*testkit.Caller{alice, s.Another(t).As(t, "alice")}
			path := strings.Replace(c.path, "{id}", order.Text("id"), 1)
			answers := testkit.Together(20, func(i int) testkit.Answer {
				return post(callers[i%2], path, "k", c.body, "If-Match", order.Header.Get("ETag"))
			})
			testkit.AwaitGoroutines(t, atTheGate, 18)
			s.AwaitBlockedOn(t, "FOR UPDATE")
			held.Commit()
			requireOneWinner(t, testkit.Receive(answers, 20))
			require.Equal(t, 1, s.Count(t, c.effect))
		})
	}
}
