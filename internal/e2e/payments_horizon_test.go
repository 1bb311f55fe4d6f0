package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
)

// A charge is repeated blindly only while the provider surely keeps its key. These tests move the first attempt beyond
// that horizon and let the provider forget its keys, as Stripe does after 24 hours: a blind repetition would now charge
// a second time.

// pastHorizon places an order, lets its first attempt meet a fault, and moves that attempt beyond the horizon. No worker
// runs when it returns, and no fault is left.
func (s shop) pastHorizon(kind string) (order string) {
	s.t.Helper()
	s.faults(fault("charge", kind, 0))
	order = s.place("pm_card_visa")
	s.StartWorker(s.t)
	s.jobFailed("charge-order", order)
	s.StopWorker(s.t)
	s.exec(`UPDATE payments SET attempted_at = attempted_at - interval '21 hours' WHERE order_id = $1`, order)
	s.Sandbox.ForgetKeys()
	s.Sandbox.ClearFaults()
	return order
}

// Ensure a charge that the provider has made and forgotten the key of is found, not made again.
func TestPaymentPastItsHorizonIsLookedUp(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.pastHorizon(sandbox.FaultError500)
	require.Equal(t, 1, s.charged(order))
	asked := len(s.attempts("charge", order))
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "succeeded")
	require.Len(t, s.attempts("charge", order), asked, "the provider was asked to charge again")
	require.Equal(t, 1, s.charged(order))
}

// Ensure a charge that the provider surely has not made is asked for once more after the lookup, and then never blindly.
func TestPaymentPastItsHorizonIsChargedOnceAfterTheLookup(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.pastHorizon(sandbox.FaultError500Before)
	require.Zero(t, s.charged(order))
	asked := len(s.attempts("charge", order))
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "succeeded")
	require.Len(t, s.attempts("charge", order), asked+1)
	require.Equal(t, 1, s.charged(order))
	requireSame(t, chargeKey(order), s.attempts("charge", order))
}

// Ensure a charge that cannot even be looked up is given up visibly, without a call that could charge twice. The job
// ends; when it is enqueued again, the lookup settles the payment.
func TestPaymentPastItsHorizonIsUnresolvedWhenTheLookupFails(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.pastHorizon(sandbox.FaultError500)
	asked := len(s.attempts("charge", order))
	s.faults(fault("search", sandbox.FaultError500, 0))
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "unresolved")
	s.jobDone("charge-order", order)
	require.Len(t, s.attempts("charge", order), asked)
	require.Equal(t, "open", s.order(order).Text("status"))

	s.enqueueCharge(order) // still no answer: the payment stays as it is, and the job ends
	s.jobDone("charge-order", order)
	require.Equal(t, "unresolved", s.payment(order).Text("status"))

	s.Sandbox.ClearFaults()
	s.enqueueCharge(order)
	s.alice.PaymentStatus(order, "succeeded")
	require.Len(t, s.attempts("charge", order), asked)
	require.Equal(t, 1, s.charged(order))
}

// Ensure a call after the lookup whose outcome is unknown is not repeated: the payment is unresolved until a later
// lookup finds what became of it.
func TestPaymentPastItsHorizonIsUnresolvedWhenTheCallFails(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.pastHorizon(sandbox.FaultError500Before)
	asked := len(s.attempts("charge", order))
	s.faults(fault("charge", sandbox.FaultDrop, 0))
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "unresolved")
	s.jobDone("charge-order", order)
	require.Len(t, s.attempts("charge", order), asked+1)
	require.Equal(t, 1, s.charged(order), "charged, although nobody but the provider knows")

	s.Sandbox.ClearFaults()
	s.Sandbox.ForgetKeys()
	s.enqueueCharge(order)
	s.alice.PaymentStatus(order, "succeeded")
	require.Len(t, s.attempts("charge", order), asked+1)
	require.Equal(t, 1, s.charged(order))
}

// Ensure a charge that was declined while nobody was listening is found as declined: the order is cancelled.
func TestPaymentPastItsHorizonIsFoundDeclined(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultError500, 0))
	order := s.place("pm_card_chargeDeclined")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	s.StopWorker(t)
	s.exec(`UPDATE payments SET attempted_at = attempted_at - interval '21 hours' WHERE order_id = $1`, order)
	s.Sandbox.ForgetKeys()
	s.Sandbox.ClearFaults()
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "failed")
	require.Equal(t, "cancelled", s.order(order).Text("status"))
	require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
}
