package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// The ways in which a job is lost although its work is not done: by hand, in River's UI, in a restore.
var lostJobs = map[string]string{
	"deleted":   `DELETE FROM river_job WHERE kind = $1`,
	"cancelled": `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE kind = $1`,
	"discarded": `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE kind = $1`,
}

// Ensure a pending charge whose job was lost gets a job again and is charged once.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestReconcileChargesWhatLostItsJob(t *testing.T) {
	t.Parallel()
	for how, lose := range lostJobs {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
			order := s.place("pm_card_visa")
			s.exec(lose, "charge-order")
			s.PeriodicJobsDue(t)
			s.StartWorker(t)
			s.alice.PaymentStatus(order, "succeeded")
			require.Len(t, s.attempts("confirm", order), 1)
		})
	}
}

// Ensure a pending refund whose job was lost gets a job again and is made once.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestReconcileRefundsWhatLostItsJob(t *testing.T) {
	t.Parallel()
	for how, lose := range lostJobs {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.StopWorker(t)
			requireStatus(t, http.StatusAccepted, s.refund(order, "k", shopTotal))
			s.exec(lose, "refund-charge")
			s.StartWorker(t)
			runNow(t, s.Service, testkit.JobReconcile)
			s.awaitJob("refund-charge", order, `state = 'completed'`)
			require.Len(t, s.refunds(order, "succeeded"), 1)
			require.Equal(t, "succeeded", s.refundStatus(order))
		})
	}
}

// Ensure a refund that was asked for and has lost its job is looked up before it is asked for again: a provider that has
// made it and pruned the key does not make it again.
func TestReconcileLooksALateRefundUp(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultError500, 0))
	requireStatus(t, http.StatusAccepted, s.refund(order, "k", 100))
	s.jobFailed("refund-charge", order)
	s.StopWorker(t)
	s.exec(lostJobs["deleted"], "refund-charge")
	s.Sandbox.ForgetKeys()
	s.Sandbox.ClearFaults()
	asked := len(s.attempts("refund", order))
	s.StartWorker(t)
	runNow(t, s.Service, testkit.JobReconcile)
	s.jobDone("refund-charge", order)
	require.Len(t, s.attempts("refund", order), asked)
	require.Len(t, s.refunds(order, "succeeded"), 1)
}

// Ensure what has a live job, in whichever state, is left alone.
func TestReconcileLeavesLiveJobsAlone(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s")
	states := []string{"available", "retryable", "running", "scheduled"}
	for _, state := range states {
		// Nobody works the queue, so that the jobs stay as they are.
		s.exec(`UPDATE river_job SET queue = 'parked', state = $1, attempted_at = now() WHERE args->>'order_id' = $2`,
			state, s.place("pm_card_visa"))
	}
	lost := s.place("pm_card_visa")
	s.exec(`DELETE FROM river_job WHERE args->>'order_id' = $1`, lost)
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	s.alice.PaymentStatus(lost, "succeeded")
	awaitRun(t, s.Service, testkit.JobReconcile)
	require.Equal(t, len(states)+1, s.Count(t, `river_job WHERE kind = 'charge-order'`))
	require.Len(t, s.attempts("confirm", lost), 1)
	require.Len(t, s.Sandbox.Attempts(), 2, "the provider was asked about another order")
}

// Ensure nothing is reconciled before its age, and that a run takes the oldest first and no more than a batch.
func TestReconcileIsBounded(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "1h", "RECONCILE_BATCH_SIZE", "2")
	s.StartWorker(t)
	s.faults(fault("charge", sandbox.FaultHoldBefore, 0)) // so that no job ends, and none is enqueued twice
	var orders []string
	for range 5 {
		orders = append(orders, s.place("pm_card_visa"))
	}
	s.held(len(orders))
	s.exec(lostJobs["deleted"], "charge-order")
	runNow(t, s.Service, testkit.JobReconcile)
	require.Zero(t, s.Count(t, `river_job WHERE kind = 'charge-order'`), "reconciled before their age")

	for i, order := range orders {
		s.exec(`UPDATE payments SET updated_at = now() - $1::interval WHERE order_id = $2`,
			time.Duration(i+2)*time.Hour, order)
	}
	for left := len(orders); left > 0; left -= 2 {
		runNow(t, s.Service, testkit.JobReconcile)
		require.Equal(t, min(len(orders), len(orders)-left+2), s.Count(t, `river_job WHERE kind = 'charge-order'`))
		for _, order := range orders[max(0, left-2):] {
			require.Equal(t, 1, s.Count(t, jobOf, "charge-order", order), "the oldest come first")
		}
	}
	require.EqualValues(t, len(orders), scrape(t, s.Metrics["worker"]).Value("orders_payments_reconciled_total"))
	s.Sandbox.ClearFaults()
	for _, order := range orders {
		s.alice.PaymentStatus(order, "succeeded")
		require.Equal(t, 1, s.charged(order))
	}
}

// Ensure a long outage of the provider, which leaves many payments with live jobs, does not keep the few without one from
// being found: a run ends well within the bound of a statement.
func TestReconcileCopesWithManyLiveJobs(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "RECONCILE_AGE", "0s", "DB_LOCK_TIMEOUT", "10s", "DB_STATEMENT_TIMEOUT", "10s")
	s.exec(`INSERT INTO orders (tenant_id, id, customer_id, status, total_amount, currency, ship_name, ship_line1, ship_line2,
			ship_city, ship_postal_code, ship_country, created_at, updated_at, version)
		SELECT 'default', gen_random_uuid(), 'many', 'open', 100, 'EUR', 'n', 'l', '', 'c', 'p', 'DE', now(), now(), 1
		FROM generate_series(1, 20000)`)
	s.exec(`INSERT INTO payments (tenant_id, order_id, status, amount, currency, payment_method, charge_id, created_at,
			updated_at, version)
		SELECT tenant_id, id, 'pending', 100, 'EUR', 'pm_card_visa', '', created_at, updated_at, 1 FROM orders`)
	s.exec(`ANALYZE payments`)
	s.exec(`ALTER TABLE river_job SET (autovacuum_enabled = off)`) // PostgreSQL does not know yet how many jobs there are
	s.exec(`INSERT INTO river_job (state, max_attempts, scheduled_at, args, kind, queue)
		SELECT 'scheduled', 10000, now() + interval '1 hour',
			jsonb_build_object('schema', 1, 'tenant_id', tenant_id, 'order_id', id), 'charge-order', 'parked' FROM orders`)
	lost := s.place("pm_card_visa")
	s.exec(`DELETE FROM river_job WHERE args->>'order_id' = $1`, lost)
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	s.alice.PaymentStatus(lost, "succeeded")
	require.Len(t, s.attempts("confirm", lost), 1)
	require.Len(t, s.Sandbox.Attempts(), 2, "the provider was asked about another order")
}
