package e2e

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure a decline and an address change do not overwrite each other. The decline writes the order, so an address change
// that comes second has a stale version; one that came first is in the order that the decline cancels.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictAddressChangeAgainstDecline(t *testing.T) {
	t.Parallel()
	requireDeclineAbsorbed(t, redirect("2 Low Street"))
}

// requireDeclineAbsorbed lets a change of an order meet the decline of its charge, in both orders.
func requireDeclineAbsorbed(t *testing.T, change move) {
	t.Helper()
	for name, declineFirst := range map[string]bool{"the decline first": true, "the change first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			s.faults(fault("charge", sandbox.FaultHold, 0))
			order := s.place("pm_card_chargeDeclined")
			tag := s.order(order).Header.Get("ETag")
			s.held(1)
			start, changed := later(func() testkit.Answer { return change.send(s, order, tag) })
			if declineFirst {
				s.queue(s.hold("orders", order), s.Sandbox.ClearFaults, start)
				requireRefused(t, changed(), http.StatusConflict, "version_conflict")
				again := change.send(s, order, s.order(order).Header.Get("ETag"))
				requireRefused(t, again, http.StatusConflict, change.ended)
			} else {
				s.queue(s.hold("orders", order), start, s.Sandbox.ClearFaults)
				requireStatus(t, http.StatusOK, changed())
			}
			s.alice.PaymentStatus(order, "failed")
			s.requireCancelled(order)
			require.Equal(t, !declineFirst, change.stored(s.order(order)))
		})
	}
}

// Ensure all that move one stock at once count: an order, a cancellation and two declines of others, and an adjustment. Each
// of them waits for the row and applies its delta to what the one before it left.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictStockIsMovedByAllAtOnce(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	s.faults(fault("charge", sandbox.FaultHold, 0))
	cancelled := s.place("pm_card_visa")
	s.place("pm_card_chargeDeclined")
	s.place("pm_card_chargeDeclined")
	s.held(3)

	row := s.HoldStock(t, shopSKU)
	answers := testkit.Together(3, func(i int) testkit.Answer {
		switch i {
		case 0:
			return place(s.alice, uuid.NewString(), testkit.OrderBody("pm_card_visa", shopSKU, "1"))
		case 1:
			return s.cancel(cancelled)
		default:
			return s.adjusting(shopSKU, 5)
		}
	})
	s.awaitBlocked(3)
	s.Sandbox.ClearFaults() // the declines return their units, the charge of the cancelled order touches no stock
	testkit.Eventually(t, "five that wait for the stock", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database()
			AND application_name IN ('orders-api', 'orders-worker') AND wait_event_type = 'Lock' AND query LIKE '%FROM stock%'`) == 5
	})
	row.Rollback()
	for _, a := range testkit.Receive(answers, 3) {
		require.Less(t, a.Status, 300, string(a.Body))
	}
	s.Stocked(t, "default", shopSKU, 5)
	testkit.Eventually(t, "the declines", func() bool { return s.OnHand(t, shopSKU) == shopStock-1+5 })
}

// Ensure a cancellation and the provider's answer to a refund do not overwrite each other: the cancellation refunds what is
// left, the answer settles its own refund, and both are in the payment afterwards.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictCancellationAgainstTheAnswerToARefund(t *testing.T) {
	t.Parallel()
	for name, answerFirst := range map[string]bool{"the answer first": true, "the cancellation first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.faults(fault("refund", sandbox.FaultHold, 0))
			requireStatus(t, http.StatusAccepted, s.refund(order, "one", 1000))
			s.held(1)
			cancel, cancelled := later(func() testkit.Answer { return s.cancel(order) })
			row := s.hold("payments", order)
			if answerFirst {
				s.queue(row, s.Sandbox.ClearFaults, cancel)
			} else {
				s.queue(row, cancel, s.Sandbox.ClearFaults)
			}
			requireStatus(t, http.StatusOK, cancelled())
			s.jobDone("refund-charge", order)
			require.EqualValues(t, shopTotal, s.payment(order).Number("refunded.amount"))
			testkit.Eventually(t, "both refunds", func() bool { return len(s.refunds(order, "succeeded")) == 2 })
			s.requireCancelled(order)
		})
	}
}

// Ensure a refund that meets the charge is accepted where the charge was recorded first, and refused otherwise.
func TestConflictRefundAgainstTheCharge(t *testing.T) {
	t.Parallel()
	for name, chargeFirst := range map[string]bool{"the charge first": true, "the refund first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			s.faults(fault("charge", sandbox.FaultHold, 0))
			order := s.place("pm_card_visa")
			s.held(1)
			refund, refunded := later(func() testkit.Answer { return s.refund(order, "r", 1000) })
			row := s.hold("payments", order)
			if chargeFirst {
				s.queue(row, s.Sandbox.ClearFaults, refund)
				requireStatus(t, http.StatusAccepted, refunded())
			} else {
				s.queue(row, refund, s.Sandbox.ClearFaults)
				requireRefused(t, refunded(), http.StatusConflict, "order_not_refundable")
			}
			s.alice.PaymentStatus(order, "succeeded")
			s.jobDone("charge-order", order)
		})
	}
}
