package e2e

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
	"example.com/orders/internal/testkit"
)

// process starts a worker as a process of its own. env overrides its settings: pairs of name and value.
func (s shop) process(env ...string) *testkit.Running {
	s.t.Helper()
	all := maps.Clone(s.Env)
	for i := 0; i+1 < len(env); i += 2 {
		all[env[i]] = env[i+1]
	}
	return testkit.Process(s.t, "worker", all)
}

// successor starts the worker that takes over from a killed one, with the shortest bounds that the settings allow.
func (s shop) successor() *testkit.Running {
	s.t.Helper()
	return s.process("PROVIDER_TIMEOUT", "1s", "JOB_TIMEOUT", "2s", "JOB_RESCUE_AFTER", "3s")
}

// timePasses makes the crash of a worker an old one: its leadership has ended, and its job counts as abandoned.
func (s shop) timePasses() {
	s.t.Helper()
	s.exec(`DELETE FROM river_leader`)
	s.exec(`UPDATE river_job SET attempted_at = attempted_at - interval '1 hour' WHERE state = 'running'`)
}

// Ensure a worker that is killed after the provider has charged and before it could record so leaves nothing behind
// but a job, which the next worker takes over: the provider repeats its answer, and nobody is charged twice. Nothing
// here helps the new worker: it waits for the dead one's leadership to end, as it would anywhere.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestPaymentSurvivesAWorkerKilledAfterTheCharge(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	first := s.process()
	s.held(1)
	require.Equal(t, 1, s.charged(order))
	first.Kill()
	require.Equal(t, "pending", s.payment(order).Text("status"))
	s.awaitJob("charge-order", order, `state = 'running'`)

	second := s.successor()
	s.alice.PaymentStatus(order, "succeeded")
	s.jobDone("charge-order", order)
	second.Stop()
	require.Equal(t, 1, s.charged(order))
	requireSame(t, chargeKey(order), s.attempts("charge", order))
}

// Ensure a worker that is killed while the provider still executes the charge leaves a job whose successor learns the
// outcome, and that a job which had failed many times before its worker was killed is taken over as soon: its history
// would otherwise have it wait for ten minutes.
func TestPaymentSurvivesAWorkerKilledBeforeTheCharge(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultHoldBefore, 1))
	order := s.place("pm_card_visa")
	first := s.process()
	s.held(1)
	require.Zero(t, s.charged(order))
	first.Kill()
	s.timePasses()
	s.exec(`UPDATE river_job SET attempt = 13, errors = array_fill(
		'{"at":"2026-01-01T00:00:00Z","attempt":1,"error":"no luck","trace":""}'::jsonb, ARRAY[12])
		WHERE kind = 'charge-order'`)

	s.successor()
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
	requireSame(t, chargeKey(order), s.attempts("charge", order))
}

// Ensure a worker that is killed after its commit leaves nothing to do: the result and the job's completion are in the
// same commit, so no moment exists in which another worker would find the job of a settled payment.
func TestPaymentIsNotAskedForAgainAfterACrashPastTheCommit(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	first := s.process()
	s.held(1)
	row := s.hold("payments", order)
	s.Sandbox.ClearFaults()
	s.awaitBlocked(1) // the worker is inside of the transaction that records the answer
	row.Rollback()
	testkit.Eventually(t, "the commit", func() bool {
		// One snapshot: what another worker would see at the same moment.
		state := queryValue[string](s, `SELECT p.status || ' ' || j.state FROM payments p, river_job j
			WHERE p.order_id = $1 AND j.args->>'order_id' = p.order_id::text`, order)
		require.Contains(t, []string{"pending running", "succeeded completed"}, state)
		return state == "succeeded completed"
	})
	first.Kill()

	s.successor()
	s.placePaid("pm_card_visa") // by the time that this order is paid, the successor has looked for work
	require.Len(t, s.attempts("charge", order), 1)
}

// Ensure a job that runs again although its result is recorded asks nobody and completes. River may run any job twice.
func TestPaymentJobThatRunsAgainAsksNobody(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.jobDone("charge-order", order)
	version := s.payment(order).Header.Get("ETag")
	s.exec(`UPDATE river_job SET state = 'available', finalized_at = NULL WHERE args->>'order_id' = $1`, order)
	s.jobDone("charge-order", order)
	require.Len(t, s.attempts("charge", order), 1)
	require.Equal(t, version, s.payment(order).Header.Get("ETag"))
}

// Ensure two workers that have the same order's job at once, as happens when a slow one is taken for dead, charge once:
// the second asks while the first is being answered, and is told that the key is at work.
func TestPaymentIsChargedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultHoldBefore, 1))
	order := s.place("pm_card_visa")
	s.enqueueCharge(order)
	s.StartWorker(t)
	s.held(1)
	s.jobFailed("charge-order", order)
	s.Sandbox.ClearFaults()
	s.alice.PaymentStatus(order, "succeeded")
	s.jobDone("charge-order", order)
	require.Equal(t, 1, s.charged(order))
	requireSame(t, chargeKey(order), s.attempts("charge", order))
}

// Ensure a worker whose answer comes after another has recorded it leaves the payment as it is and is done.
func TestPaymentIsRecordedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.enqueueCharge(order)
	s.StartWorker(t)
	s.held(1)
	recorded := s.alice.PaymentStatus(order, "succeeded").Header.Get("ETag") // by the other job
	s.Sandbox.ClearFaults()
	s.jobDone("charge-order", order)
	require.Equal(t, recorded, s.payment(order).Header.Get("ETag"))
	require.Zero(t, s.Count(t, jobOf+` AND cardinality(errors) > 0`, "charge-order", order))
	require.Equal(t, 1, s.charged(order))
}
