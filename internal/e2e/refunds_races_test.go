package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure refunds at once never give back more than was charged: of eight against a balance that allows three, three are
// accepted and five refused, and none of them sees a conflict of versions.
func TestRefundsAtOnceStayWithinTheCharge(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "DB_MAX_CONNS", "12")
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	row := s.hold("payments", order)
	answers := testkit.Together(8, func(i int) testkit.Answer {
		return s.refund(order, "refund-"+strconv.Itoa(i), shopTotal/3)
	})
	s.awaitBlocked(8)
	row.Rollback()

	accepted := 0
	for _, a := range testkit.Receive(answers, 8) {
		if a.Status == http.StatusAccepted {
			accepted++
			continue
		}
		requireRefused(t, a, http.StatusConflict, "refund_exceeds_charge")
	}
	require.Equal(t, 3, accepted)
	s.jobDone("refund-charge", order)
	require.Len(t, s.refunds(order, "succeeded"), 3)
	require.EqualValues(t, shopTotal, s.payment(order).Number("refunded.amount"))
}

// Ensure a refund and a cancellation at once give back what was charged, together and not each.
func TestRefundAgainstCancellation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		cancelFirst bool
		refunds     []int64
	}{
		{"the refund first", false, []int64{1000, shopTotal - 1000}},
		{"the cancellation first", true, []int64{shopTotal}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			refund, refunded := later(func() testkit.Answer { return s.refund(order, "r", 1000) })
			cancel, cancelled := later(func() testkit.Answer { return s.cancel(order) })
			row := s.hold("payments", order)
			if test.cancelFirst {
				s.queue(row, cancel, refund)
				requireRefused(t, refunded(), http.StatusConflict, "refund_exceeds_charge")
			} else {
				s.queue(row, refund, cancel)
				requireStatus(t, http.StatusAccepted, refunded())
			}
			requireStatus(t, http.StatusOK, cancelled())
			s.jobDone("refund-charge", order)
			var amounts []int64
			for _, r := range s.refunds(order, "succeeded") {
				amounts = append(amounts, r.Amount)
			}
			require.ElementsMatch(t, test.refunds, amounts)
			s.requireCancelled(order)
		})
	}
}

// Ensure the provider's answer to one refund and the request for another do not overwrite each other: both are in the
// payment afterwards, whoever came first.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestRefundAgainstTheAnswerToAnother(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{"the answer first": true, "the request first": false}
	for name, answerFirst := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.faults(fault("refund", sandbox.FaultHold, 0))
			requireStatus(t, http.StatusAccepted, s.refund(order, "one", 1000))
			s.held(1)

			request, requested := later(func() testkit.Answer { return s.refund(order, "two", 500) })
			row := s.hold("payments", order)
			if answerFirst {
				s.queue(row, s.Sandbox.ClearFaults, request)
			} else {
				s.queue(row, request, s.Sandbox.ClearFaults)
			}
			requireStatus(t, http.StatusAccepted, requested())
			s.jobDone("refund-charge", order)
			require.Equal(t, 2, s.Count(t, `refunds WHERE order_id = $1 AND status = 'succeeded'`, order))
			require.EqualValues(t, 1500, s.payment(order).Number("refunded.amount"))
			require.Len(t, s.refunds(order, "succeeded"), 2)
		})
	}
}

// Ensure nothing is refunded before the charge is known to have succeeded, nor after it was declined.
func TestRefundNeedsACharge(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.place("pm_card_chargeDeclined")
	requireRefused(t, s.refund(order, "r", 1000), http.StatusConflict, "order_not_refundable")
	s.alice.PaymentStatus(order, "failed")
	requireRefused(t, s.refund(order, "r", 1000), http.StatusConflict, "order_not_refundable")
	require.Empty(t, s.attempts("refund", order))
}
