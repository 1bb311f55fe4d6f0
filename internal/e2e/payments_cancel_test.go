package e2e

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
	"example.com/orders/internal/testkit"
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

// Ensure an order that is cancelled before anybody asked for its charge is never charged, and one that is cancelled
// after the worker has noted its attempt gets its money back once the charge is known.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentAttemptAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShop(t)
		s.faults(fault("charge", sandbox.FaultHold, 0))
		order := s.place("pm_card_visa")
		requireStatus(t, http.StatusOK, s.cancelAgainst(func() { s.StartWorker(t) }, order, at))
		s.requireCancelled(order)
		if at.cancelFirst {
			s.jobDone("charge-order", order)
			require.Equal(t, "canceled", s.payment(order).Text("status"))
			require.Empty(t, s.Sandbox.Attempts())
			return
		}
		s.held(1)
		require.Equal(t, "pending", s.payment(order).Text("status"))
		s.Sandbox.ClearFaults()
		s.refundedOnce(order)
	})
}

// Ensure a charge that succeeds while its order is being cancelled is refunded exactly once, whether its success or the
// cancellation commits first.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentSuccessAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShop(t)
		s.faults(fault("charge", sandbox.FaultHold, 0))
		order := s.place("pm_card_visa")
		s.StartWorker(t)
		s.held(1)
		requireStatus(t, http.StatusOK, s.cancelAgainst(s.Sandbox.ClearFaults, order, at))
		s.requireCancelled(order)
		s.refundedOnce(order)
		require.Equal(t, 1, s.charged(order))
	})
}

// Ensure a decline and a cancellation end an order once: whoever commits second finds it cancelled, and the stock comes
// back once. A cancellation that lost has not seen the version that the decline made.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestPaymentDeclineAgainstCancellation(t *testing.T) {
	t.Parallel()
	bothOrders(t, func(t *testing.T, at schedule) {
		s := openShop(t)
		s.faults(fault("charge", sandbox.FaultHold, 0))
		order := s.place("pm_card_chargeDeclined")
		s.StartWorker(t)
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
	s := openShop(t)
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
	s := openShop(t)
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

// Ensure an order whose charge nobody knows the outcome of can be cancelled, and that its money goes back once the
// charge is found.
func TestPaymentUnresolvedIsRefundedWhenFoundAfterCancellation(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.pastHorizon(sandbox.FaultError500)
	s.faults(fault("search", sandbox.FaultError500, 0))
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "unresolved")
	requireStatus(t, http.StatusOK, s.cancel(order))
	s.requireCancelled(order)
	require.Equal(t, "unresolved", s.payment(order).Text("status"))

	s.Sandbox.ClearFaults()
	s.enqueueCharge(order)
	s.refundedOnce(order)
	s.requireCancelled(order)
	require.Equal(t, 1, s.charged(order))
}

// Ensure a charge that succeeds and a refund leave a customer's version of the order as it is: the payment is a resource of its
// own, with a version of its own. A decline does not, see TestAddressChangeAgainstDecline.
func TestPaymentChangesLeaveTheVersionOfTheOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t)
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
