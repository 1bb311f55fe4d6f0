package e2e

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// schedule is a way in which a cancellation and the charge's job can meet: at the row of the order or at that of its
// payment, and who comes first.
type schedule struct {
	table       string
	cancelFirst bool
}

// bothOrders runs a race with every schedule.
func bothOrders(t *testing.T, race func(t *testing.T, at schedule)) {
	t.Helper()
	names := map[string]schedule{
		"at the order, the cancellation first":   {"orders", true},
		"at the order, the worker first":         {"orders", false},
		"at the payment, the cancellation first": {"payments", true},
		"at the payment, the worker first":       {"payments", false},
	}
	for name, at := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race(t, at)
		})
	}
}

// cancelAgainst runs a cancellation against a transaction of the worker, which worker sets off, and returns its answer.
func (s shop) cancelAgainst(worker func(), order string, at schedule) testkit.Answer {
	s.t.Helper()
	cancel, answer := later(func() testkit.Answer { return s.cancel(order) })
	first, second := worker, cancel
	if at.cancelFirst {
		first, second = cancel, worker
	}
	s.queue(s.hold(at.table, order), first, second)
	return answer()
}

// requireCancelled checks that an order is cancelled and that its stock is back, once.
func (s shop) requireCancelled(order string) {
	s.t.Helper()
	require.Equal(s.t, "cancelled", s.order(order).Text("status"))
	require.EqualValues(s.t, shopStock, s.OnHand(s.t, shopSKU))
}

// Ensure an order that is cancelled before its intent is known here is never charged, and that the provider decides from
// then on: an intent that is not confirmed yet is cancelled there.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentIntentAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShopWithoutEvents(t)
		s.StartWorker(t)
		s.faults(fault(sandbox.OpCreateIntent, sandbox.FaultHold, 1), fault(sandbox.OpConfirmIntent, sandbox.FaultHoldBefore, 1))
		order := s.place("pm_card_visa")
		s.held(1) // the intent is created; the worker goes on to commit its id
		release := func() { s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultError500Undone, 1)) }
		requireStatus(t, http.StatusOK, s.cancelAgainst(release, order, at))
		s.requireCancelled(order)
		s.alice.PaymentStatus(order, "canceled")
		s.jobDone("charge-order", order)
		require.Zero(t, s.charged(order))
		require.Equal(t, !at.cancelFirst, len(s.attempts("cancel", order)) > 0, "the provider is asked only about a known intent")
	})
}

// Ensure a charge that succeeds while its order is being cancelled is refunded exactly once, whether its success or the
// cancellation commits first.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentSuccessAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShopWithoutEvents(t)
		s.StartWorker(t)
		s.faults(fault("charge", sandbox.FaultHold, 0))
		order := s.place("pm_card_visa")
		s.held(1)
		requireStatus(t, http.StatusOK, s.cancelAgainst(s.Sandbox.ClearFaults, order, at))
		s.requireCancelled(order)
		s.refundedOnce(order)
		require.Equal(t, 1, s.charged(order))
	})
}

// Ensure a decline and a cancellation end an order once: the second to commit finds it cancelled, and the stock comes
// back once. A cancellation that lost has not seen the version that the decline made.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentDeclineAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShopWithoutEvents(t)
		s.StartWorker(t)
		s.faults(fault("charge", sandbox.FaultHold, 0))
		order := s.place("pm_card_chargeDeclined")
		s.held(1)
		answer := s.cancelAgainst(s.Sandbox.ClearFaults, order, at)
		reason := "changed my mind"
		if at.cancelFirst {
			requireStatus(t, http.StatusOK, answer)
		} else {
			requireRefused(t, answer, http.StatusConflict, "version_conflict")
			requireRefused(t, s.cancel(order), http.StatusConflict, "order_not_cancellable")
			reason = "payment_failed"
		}
		s.alice.PaymentStatus(order, "failed")
		s.requireCancelled(order)
		require.Equal(t, reason, s.order(order).Text("cancellation.reason"))
		require.Zero(t, s.charged(order))
		require.Empty(t, s.Sandbox.Ledger().Refunds)
	})
}

// Ensure cancelling a paid order refunds what it cost once, also when the request is sent again.
func TestPaymentOfAPaidOrderIsRefundedOnCancellation(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	tag, key := s.order(order).Header.Get("ETag"), uuid.NewString()
	send := func() testkit.Answer {
		return post(s.alice, "/v1/orders/"+order+"/cancellation", key, `{}`, "If-Match", tag)
	}
	first := send()
	requireStatus(t, http.StatusOK, first)
	requireReplay(t, first, send())
	s.refundedOnce(order)
	s.requireCancelled(order)
}

// Ensure of two cancellations at once one is accepted and one refused, and that the money goes back once.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentIsRefundedOnceByTwoCancellations(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	startFirst, first := later(func() testkit.Answer { return s.cancel(order) })
	startSecond, second := later(func() testkit.Answer { return s.cancel(order) })
	s.queue(s.hold("orders", order), startFirst, startSecond)
	requireStatus(t, http.StatusOK, first())
	requireRefused(t, second(), http.StatusConflict, "version_conflict")
	s.refundedOnce(order)
	s.requireCancelled(order)
}

// Ensure the provider decides between a cancellation and a confirmation that is under way: the charge that won is refunded
// in full, the one that lost is never made.
func TestPaymentCancelledWhileItIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, chargeWins := range map[string]bool{"the charge wins": true, "the cancellation wins": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			kind := sandbox.FaultError500Undone
			if chargeWins {
				kind = sandbox.FaultError500
			}
			s.faults(fault("charge", kind, 0))
			order := s.place("pm_card_visa")
			s.StartWorker(t)
			testkit.Eventually(t, "confirmation", func() bool { return len(s.attempts("confirm", order)) > 0 })
			if !chargeWins {
				s.jobFailed("charge-order", order)
			}
			requireStatus(t, http.StatusOK, s.cancel(order))
			s.requireCancelled(order)
			if chargeWins {
				s.refundedOnce(order)
				require.Equal(t, 1, s.charged(order))
				return
			}
			s.alice.PaymentStatus(order, "canceled")
			require.Zero(t, s.charged(order))
			require.NotEmpty(t, s.attempts("cancel", order))
		})
	}
}

// Ensure a charge that succeeds and a refund leave a customer's version of the order as it is: the payment is a resource of its
// own, with a version of its own. A decline does not, see TestConflictAddressChangeAgainstDecline.
func TestPaymentChangesLeaveTheVersionOfTheOrder(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	order := s.place("pm_card_visa")
	tag, pending := s.order(order).Header.Get("ETag"), s.payment(order).Header.Get("ETag")
	s.StartWorker(t)
	paid := s.alice.PaymentStatus(order, "succeeded").Header.Get("ETag")
	require.NotEqual(t, pending, paid)
	requireStatus(t, http.StatusAccepted, s.refund(order, "r", 1000))
	s.jobDone("refund-charge", order)
	require.NotEqual(t, paid, s.payment(order).Header.Get("ETag"))

	require.Equal(t, tag, s.order(order).Header.Get("ETag"))
	moved := s.alice.Do(http.MethodPut, "/v1/orders/"+order+"/shipping-address", testkit.Address, "If-Match", tag)
	requireStatus(t, http.StatusOK, moved)
}
