package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure a charge that is in flight while its job is lost and enqueued again is made once: while it has not been made the
// provider turns the second call away, and afterwards the second job finds it made.
func TestReconcileAgainstCharge(t *testing.T) {
	t.Parallel()
	for kind, calls := range map[string]int{sandbox.FaultHoldBefore: 2, sandbox.FaultHold: 1} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
			s.StartWorker(t)
			s.faults(fault("charge", kind, 1))
			order := s.place("pm_card_visa")
			s.held(1)
			s.exec(lostJobs["deleted"], "charge-order")
			runNow(t, s.Service, testkit.JobReconcile)
			testkit.Eventually(t, "calls of both jobs", func() bool {
				return len(s.attempts("confirm", order)) >= calls && (calls > 1 || s.payment(order).Text("status") == "succeeded")
			})
			s.Sandbox.ClearFaults()
			s.jobDone("charge-order", order)
			require.Equal(t, "succeeded", s.payment(order).Text("status"))
			require.Equal(t, 1, s.charged(order))
			requireSame(t, confirmKey(order), s.attempts("confirm", order))
		})
	}
}

// Ensure a reconciliation that begins beside another one waits for it, and then sees what it has enqueued: one job, not two.
func TestReconcileTakeTurns(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s", "WORKER_CONCURRENCY", "1")
	order := s.place("pm_card_visa")
	s.exec(lostJobs["deleted"], "charge-order")
	stop := s.stopAtJob("alice")
	s.Enqueue(t, testkit.JobReconcile)
	s.Enqueue(t, testkit.JobReconcile)
	s.AnotherWorker(t)
	s.AnotherWorker(t)
	s.awaitBlocked(2)
	stop.Rollback()
	s.alice.PaymentStatus(order, "succeeded")
	s.jobDone("charge-order", order)
	require.Equal(t, 1, s.Count(t, jobOf, "charge-order", order))
	require.Equal(t, 1, s.charged(order))
}

// Ensure a database that comes back without its jobs, as from a backup that left River's tables out, finishes all that
// was under way: what was not charged, what was charged without the answer having arrived, and what was to be refunded.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestReconcileFinishesEverythingAfterARestore(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
	s.StartWorker(t)
	paid := s.placePaid("pm_card_visa")
	s.faults(fault("charge", sandbox.FaultDrop, 0))
	answerLost := s.place("pm_card_visa")
	s.jobFailed("charge-order", answerLost)
	s.StopWorker(t)
	notAsked := s.place("pm_card_visa")
	requireStatus(t, http.StatusAccepted, s.refund(paid, "k", 700))
	s.exec(`DELETE FROM river_job`)
	s.Sandbox.ClearFaults()

	s.StartWorker(t)
	s.alice.PaymentStatus(answerLost, "succeeded")
	s.alice.PaymentStatus(notAsked, "succeeded")
	s.jobDone("refund-charge", paid)
	for _, order := range []string{paid, answerLost, notAsked} {
		require.Equal(t, 1, s.charged(order))
	}
	require.Len(t, s.refunds(paid, "succeeded"), 1)
	require.EqualValues(t, 700, s.payment(paid).Number("refunded.amount"))
}
