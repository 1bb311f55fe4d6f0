package e2e

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
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

// timePasses makes the crash of the only worker an old one: its sessions and its leadership have ended, and every job that
// it was running counts as abandoned. Without it a test that waits for all jobs would wait for JOB_RESCUE_AFTER.
func (s shop) timePasses() {
	s.t.Helper()
	testkit.Eventually(s.t, "end of the killed worker's sessions", func() bool {
		return s.Count(s.t, `pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'orders-worker%'`) == 0
	})
	s.exec(`DELETE FROM river_leader`)
	s.exec(`UPDATE river_job SET attempted_at = attempted_at - interval '1 hour' WHERE state = 'running'`)
}

// crashPoint is a place in the charge's protocol at which a worker is killed.
type crashPoint struct {
	name string
	// faults bring the worker to the point, and reach waits until it is there. reach returns what frees a row that it holds.
	faults []sandbox.FaultRule
	reach  func(s shop, order string) (free func())
	intent bool // the intent's id is known once the crash is over
	ended  bool // so is the outcome
}

// inCall stops the worker in a call that the provider holds.
func inCall(s shop, _ string) (free func()) {
	s.held(1)
	return func() {}
}

// atRow stops the worker in the transaction that follows the call that the provider holds: the answer is held until the
// test has locked the payment's row. COMMIT has been sent by then, so the transaction goes on when its worker has gone.
func atRow(s shop, order string) (free func()) {
	s.held(1)
	row := s.hold("payments", order)
	s.Sandbox.ClearFaults()
	s.awaitBlocked(1)
	return row.Rollback
}

func chargeCrashPoints() []crashPoint {
	create := func(kind string) []sandbox.FaultRule {
		return []sandbox.FaultRule{fault(sandbox.OpCreateIntent, kind, 1)}
	}
	confirm := func(kind string) []sandbox.FaultRule {
		return []sandbox.FaultRule{fault(sandbox.OpConfirmIntent, kind, 1)}
	}
	return []crashPoint{
		{"while the intent is created", create(sandbox.FaultHoldBefore), inCall, false, false},
		{"after the intent is created", create(sandbox.FaultHold), inCall, false, false},
		{"while the intent's id is committed", create(sandbox.FaultHold), atRow, true, false},
		{"while the intent is confirmed", confirm(sandbox.FaultHoldBefore), inCall, true, false},
		{"after the intent is confirmed", confirm(sandbox.FaultHold), inCall, true, false},
		{"while the outcome is committed", confirm(sandbox.FaultHold), atRow, true, true},
	}
}

// Ensure a worker that is killed at any point of the charge's protocol leaves a job that its successor takes over, and that
// the order is charged once: although the successor's calls meet saved 500s.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestPaymentSurvivesAWorkerKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	for _, c := range chargeCrashPoints() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.faults(c.faults...)
			order := s.place("pm_card_visa")
			first := s.process()
			free := c.reach(s, order)
			first.Kill()
			free()
			testkit.Eventually(t, "end of what the killed worker had sent", func() bool {
				known := queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order) != ""
				return known == c.intent && (s.payment(order).Text("status") == "succeeded") == c.ended
			})
			require.LessOrEqual(t, s.charged(order), 1)
			if !c.ended {
				s.awaitJob("charge-order", order, `state = 'running'`)
			}
			s.timePasses()
			s.faults(fault(sandbox.OpCreateIntent, sandbox.FaultError500, 1),
				fault(sandbox.OpConfirmIntent, sandbox.FaultError500Undone, 1))

			second := s.process()
			s.alice.PaymentStatus(order, "succeeded")
			s.jobDone("charge-order", order)
			second.Stop()
			require.Equal(t, 1, s.charged(order))
			s.requireOneIntentCharged(order)
		})
	}
}

// Ensure a worker that is killed before it has looked at the payment has asked for nothing, and that its successor does.
func TestPaymentSurvivesAWorkerKilledBeforeItsFirstLook(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	order := s.place("pm_card_visa")
	table := s.Begin(t).Exec(`LOCK TABLE payments IN ACCESS EXCLUSIVE MODE`) // the look locks nothing, and waits for this alone
	first := s.process()
	s.awaitBlocked(1)
	first.Kill()
	require.Empty(t, s.Sandbox.Attempts())
	table.Rollback()
	s.timePasses()

	s.process()
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
}

// Ensure a killed worker's job is taken over without any help, once its leadership has ended, and that a job which had
// failed many times is taken over as soon: its history would otherwise have it wait for ten minutes.
func TestPaymentIsTakenOverWithoutHelp(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	first := s.process()
	s.held(1)
	s.exec(`UPDATE river_job SET attempt = 13, errors = array_fill(
		'{"at":"2026-01-01T00:00:00Z","attempt":1,"error":"no luck","trace":""}'::jsonb, ARRAY[12])
		WHERE kind = 'charge-order'`)
	first.Kill()

	second := s.process("PROVIDER_TIMEOUT", "4s", "JOB_TIMEOUT", "5s", "JOB_RESCUE_AFTER", "6s")
	s.alice.PaymentStatus(order, "succeeded")
	s.jobDone("charge-order", order)
	second.Stop()
	require.Equal(t, 1, s.charged(order))
	requireSame(t, confirmKey(order), s.attempts("confirm", order))
}

// Ensure a worker that is killed after its commit leaves nothing to do: the result and the job's completion are in the
// same commit, so no moment exists in which another worker would find the job of a settled payment.
func TestPaymentIsNotAskedForAgainAfterACrashPastTheCommit(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
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

	s.process()
	s.placePaid("pm_card_visa") // by the time that this order is paid, the successor has looked for work
	require.Len(t, s.attempts("confirm", order), 1)
}

// Ensure a job that runs again although its result is recorded calls no provider and completes. River may run any job twice.
func TestPaymentJobThatRunsAgainAsksNobody(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.jobDone("charge-order", order)
	version := s.payment(order).Header.Get("ETag")
	s.exec(`UPDATE river_job SET state = 'available', finalized_at = NULL WHERE args->>'order_id' = $1`, order)
	s.jobDone("charge-order", order)
	require.Len(t, s.attempts("confirm", order), 1)
	require.Equal(t, version, s.payment(order).Header.Get("ETag"))
}

// Ensure two workers that have the same order's job at once, as happens when a slow one is taken for dead, charge once:
// the second asks while the first is being answered, and is told that the key is at work.
func TestPaymentIsChargedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
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
	requireSame(t, confirmKey(order), s.attempts("confirm", order))
}

// Ensure a worker whose answer comes after another has recorded it leaves the payment as it is and is done.
func TestPaymentIsRecordedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
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
