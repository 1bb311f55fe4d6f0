package e2e

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// eventsLoadOrders is how many orders TestEventsUnderLoad places; EVENTS_LOAD_ORDERS says another number.
const (
	eventsLoadOrders = 100
	loadSKU          = "LOAD-001"
)

func loadOrders(t *testing.T) int {
	t.Helper()
	text := os.Getenv("EVENTS_LOAD_ORDERS")
	if text == "" {
		return eventsLoadOrders
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// badPost delivers events in every way that the sandbox knows: on time, never, twice, after the next one, late, and with a
// forgery or an old signature beside them; and some calls of the worker are answered 500 and saved so. Every event of a
// failed refund arrives, in its way: no job of this service asks for that.
func badPost(n int) (rules []sandbox.FaultRule) {
	ways := []string{
		sandbox.FaultLost, sandbox.FaultTwice, sandbox.FaultReorder, sandbox.FaultForged, sandbox.FaultReplayLate, sandbox.FaultLate,
	}
	for i := range n {
		for _, kind := range []string{"payment_intent.succeeded", "charge.succeeded", "refund.created", "refund.failed"} {
			way := ways[i%len(ways)]
			if way == sandbox.FaultLost && kind == "refund.failed" {
				way = sandbox.FaultTwice
			}
			rule := sandbox.FaultRule{Operation: sandbox.OpEvent, EventType: kind, Kind: way, Times: 1}
			if way == sandbox.FaultLate {
				rule.DelayMS = 1 + i%500
			}
			rules = append(rules, rule)
		}
	}
	few := min(n/10, 9) // in a row; ten would make the worker leave the provider alone for a while
	return append(rules, fault(sandbox.OpConfirmIntent, sandbox.FaultError500, few), fault(sandbox.OpRefund, sandbox.FaultDrop, few))
}

// Ensure books and ledger agree whatever becomes of the events of many orders, of which a part is cancelled, a part refunded,
// and a part of the refunds fails later; and that a forged or replayed event changes nothing.
func TestEventsUnderLoad(t *testing.T) {
	t.Parallel()
	n := loadOrders(t)
	s := openShop(t)
	s.Product(t, loadSKU, shopTotal/2, int64(2*n))
	s.StartWorker(t)
	s.faults(badPost(n)...)
	orders := s.placeMany(n)
	for i, order := range orders {
		if i%4 == 0 {
			requireStatus(t, http.StatusOK, s.cancel(order))
		}
	}
	s.settledSoon(n)
	for i, order := range orders {
		if i%4 == 1 {
			s.alice.PaymentStatus(order, "succeeded")
			requireStatus(t, http.StatusAccepted, s.refund(order, order, shopTotal))
		}
	}
	s.settledSoon(n)
	failed := map[string]bool{}
	for i, order := range orders {
		if i%8 == 1 {
			require.NoError(t, s.Sandbox.FailRefund(s.refunds(order, "succeeded")[0].ID))
			failed[order] = true
		}
	}
	s.settledSoon(n)
	for i, order := range orders {
		p := s.payment(order)
		switch {
		case failed[order]:
			require.Equal(t, "failed", s.refundStatus(order))
			require.Zero(t, p.Number("refunded.amount"))
		case i%4 == 1:
			require.EqualValues(t, shopTotal, p.Number("refunded.amount"))
		case i%4 > 1:
			require.Equal(t, "succeeded", p.Text("status"))
			require.Zero(t, p.Number("refunded.amount"))
		}
	}
	require.EqualValues(t, len(failed), s.found("worker", "refund_failed_late"))
	requireRefusals(t, s.Sandbox.Deliveries())
}

// settledSoon is settled for so many orders, whose jobs do not wait between two attempts.
func (s shop) settledSoon(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.delivered()
		s.exec(`UPDATE river_job SET state = 'available', scheduled_at = now()
			WHERE state IN ('retryable', 'scheduled') AND kind IN ('charge-order', 'refund-charge', 'settle-payment')`)
		return s.Count(s.t, jobsAtWork) == 0
	}, testkit.Wait+time.Duration(n)*time.Second, 100*time.Millisecond)
}

// placeMany places orders from a few goroutines at once.
func (s shop) placeMany(n int) []string {
	s.t.Helper()
	orders, bodies := make([]string, n), testkit.OrderBody("pm_card_visa", loadSKU, "2")
	var placing sync.WaitGroup
	for first := range 4 {
		placing.Go(func() {
			for i := first; i < n; i += 4 {
				orders[i] = post(s.alice, "/v1/orders", "load-"+strconv.Itoa(i), bodies).Text("id")
			}
		})
	}
	placing.Wait()
	require.NotContains(s.t, orders, "")
	return orders
}

// requireRefusals checks that each forged or replayed delivery was answered 400, and each of the others 200 in the end.
func requireRefusals(t *testing.T, all []sandbox.Delivery) {
	t.Helper()
	seen := map[string]int{}
	for _, d := range all {
		seen[d.Kind]++
		if d.Kind == sandbox.DeliveryEvent {
			require.Equal(t, http.StatusOK, d.Status, d.EventID)
		} else {
			require.Equal(t, http.StatusBadRequest, d.Status, d.EventID)
		}
	}
	require.Positive(t, seen[sandbox.DeliveryForged])
	require.Positive(t, seen[sandbox.DeliveryReplay])
}
