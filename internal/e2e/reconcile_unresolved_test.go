package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
)

// unresolved places an order whose first attempt meets a fault and whose outcome then cannot be looked up: nobody asks
// about it any more. The provider has forgotten its keys, so that a blind call would charge again.
func (s shop) unresolved(kind string) (order string) {
	s.t.Helper()
	order = s.pastHorizon(kind)
	s.faults(fault("search", sandbox.FaultError500, 0))
	s.StartWorker(s.t)
	s.alice.PaymentStatus(order, "unresolved")
	s.jobDone("charge-order", order)
	return order
}

// Ensure an unresolved charge is looked up first, settled where the provider has it, and asked for once where the
// provider has none.
func TestReconcileSettlesAnUnresolvedCharge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		calls int // that the provider gets once it answers again
	}{
		"the provider has it":   {sandbox.FaultError500, 0},
		"the provider has none": {sandbox.FaultError500Before, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, rarely("RECONCILE_AGE", "0s")...)
			order := s.unresolved(c.fault)
			asked := len(s.attempts("charge", order))
			s.Sandbox.ClearFaults()
			runNow(t, s.Service, jobReconcile)
			s.alice.PaymentStatus(order, "succeeded")
			require.Len(t, s.attempts("charge", order), asked+c.calls)
			require.Equal(t, 1, s.charged(order))
		})
	}
}

// Ensure an unresolved charge that still cannot be looked up is tried again once in every age, not in every run.
func TestReconcileTriesAnUnresolvedChargeOnceInItsAge(t *testing.T) {
	t.Parallel()
	s := openShop(t, rarely("RECONCILE_AGE", "1h")...)
	order := s.unresolved(sandbox.FaultError500Before)
	awaitRun(t, s.Service, jobReconcile) // that of the start, so that no other run is at work beside those below
	asked := len(s.attempts("charge", order))
	s.exec(`UPDATE payments SET updated_at = now() - interval '2 hours' WHERE order_id = $1`, order)
	for range 3 {
		runNow(t, s.Service, jobReconcile)
		s.jobDone("charge-order", order)
		require.Equal(t, 2, s.Count(t, jobOf, "charge-order", order), "the first job and one from reconciliation")
	}
	require.Equal(t, "unresolved", s.payment(order).Text("status"))
	require.Less(t, queryValue[time.Duration](s, `SELECT now() - updated_at FROM payments`), time.Hour)
	require.Len(t, s.attempts("charge", order), asked, "called blindly")
}
