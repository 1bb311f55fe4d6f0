package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// stopAtJob makes the transactions of a customer stop behind the insertion of their outbox job, where everything is
// written and nothing is committed, for as long as the test holds an advisory lock.
func (s shop) stopAtJob(customer string) *testkit.Held {
	s.t.Helper()
	s.exec(`CREATE FUNCTION test_stop() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF EXISTS (SELECT FROM orders WHERE id = (NEW.args->>'order_id')::uuid AND customer_id = TG_ARGV[0]) THEN
				PERFORM pg_advisory_xact_lock(4711);
			END IF;
			RETURN NULL;
		END $$`)
	s.exec(`CREATE TRIGGER test_stop AFTER INSERT ON river_job FOR EACH ROW EXECUTE FUNCTION test_stop('` + customer + `')`)
	return s.Begin(s.t).Exec(`SELECT pg_advisory_xact_lock(4711)`)
}

// Ensure the provider is not called before the transaction of the order has committed: an order that has written all it
// has to write, its job included, is not charged while it waits to commit, though the worker charges others meanwhile.
//
// Standard: litespec/ext/concurrency#delay-irreversible-provider-calls
func TestPaymentIsAskedForAfterTheCommitOnly(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	stop := s.stopAtJob("alice")
	start, placed := later(func() testkit.Answer {
		return place(s.alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	})
	start()
	s.awaitBlocked(1)

	s.Product(t, "MUG-001", 1250, 1) // bob's order must not wait for alice's stock
	bob := s.As(t, "bob")
	bob.PaymentStatus(bob.Place("b", testkit.OrderBody("pm_card_visa", "MUG-001", "1")), "succeeded")
	require.Len(t, s.Sandbox.Attempts(), 2, "only bob's order may have an intent")

	stop.Rollback()
	order := placed()
	requireStatus(t, http.StatusCreated, order)
	s.alice.PaymentStatus(order.Text("id"), "succeeded")
	require.Equal(t, 1, s.charged(order.Text("id")))
}

// Ensure a transaction that does not commit is never charged, and that its key then places and pays one order.
//
// Standard: litespec/ext/concurrency#delay-irreversible-provider-calls
func TestPaymentIsNeverAskedForWithoutACommit(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	stop := s.stopAtJob("alice")
	body := testkit.OrderBody("pm_card_visa", shopSKU, "2")
	start, answer := later(func() testkit.Answer { return place(s.alice, "k", body) })
	start()
	s.AwaitBlocked(t, 1)
	require.True(t, queryValue[bool](s, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'orders-api' AND wait_event_type = 'Lock'`))
	requireStatus(t, http.StatusServiceUnavailable, answer())
	stop.Rollback()
	require.Zero(t, s.Count(t, `orders`))
	require.Zero(t, s.Count(t, `river_job WHERE kind = 'charge-order'`))

	order := s.alice.Place("k", body)
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
	require.Len(t, s.Sandbox.Attempts(), 2)
}

// Ensure no transaction is open and no row is locked while the provider is being asked: a slow provider holds up
// neither the database nor anybody who wants to read or cancel the order.
func TestPaymentIsAskedForOutsideOfAnyTransaction(t *testing.T) {
	t.Parallel()
	// No timeout must end the call, and with it a transaction around it, before this test has looked.
	s := openShopWithoutEvents(t, "PROVIDER_TIMEOUT", "5m", "JOB_TIMEOUT", "10m", "JOB_RESCUE_AFTER", "1h", "DB_IDLE_TX_TIMEOUT", "10m")
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.held(1)
	s.Begin(t).
		Exec(`SELECT FROM orders WHERE id = $1 FOR UPDATE NOWAIT`, order).
		Exec(`SELECT FROM payments WHERE order_id = $1 FOR UPDATE NOWAIT`, order).
		Exec(`SELECT FROM river_job WHERE args->>'order_id' = $1 FOR UPDATE NOWAIT`, order).
		Rollback()
	// River's own short transactions come and go; one around the call would stay for as long as the call is held.
	testkit.Eventually(t, "no transaction of the worker", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-worker'
			AND xact_start IS NOT NULL`) == 0
	})
	s.Sandbox.ClearFaults()
	s.alice.PaymentStatus(order, "succeeded")
}

// failAtCommit makes a transaction that gives a payment the status fail in its COMMIT, the first times times.
func (s shop) failAtCommit(status, sqlState string, times string) {
	s.t.Helper()
	s.exec(`CREATE SEQUENCE test_commits`) // what a sequence gave out stays given out, unlike everything else here
	s.exec(`CREATE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF nextval('test_commits') <= TG_ARGV[1]::bigint THEN
				RAISE EXCEPTION 'this COMMIT fails' USING ERRCODE = TG_ARGV[0];
			END IF;
			RETURN NULL;
		END $$`)
	s.exec(`CREATE CONSTRAINT TRIGGER test_fail AFTER UPDATE ON payments DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.status = '` + status + `') EXECUTE FUNCTION test_fail('` + sqlState + `', '` + times + `')`)
}

// Ensure a serialization failure at the COMMIT that records a charge is retried at once, without asking the provider.
func TestPaymentResultIsRecordedDespiteASerializationFailure(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.failAtCommit("succeeded", "40001", "2")
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.jobDone("charge-order", order)
	require.EqualValues(t, 3, queryValue[int64](s, `SELECT last_value FROM test_commits`))
	require.Len(t, s.attempts("confirm", order), 1)
	require.Zero(t, queryValue[int](s, `SELECT coalesce(sum(cardinality(errors)), 0)::int FROM river_job WHERE kind = 'charge-order'`))
}

// Ensure the provider's answer and the job's completion commit together or not at all: when the COMMIT fails for good,
// nothing of it is seen, the job runs again, and the provider repeats its answer. This holds for a decline too, which
// touches the order and its stock.
func TestPaymentResultAndJobCommitTogether(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, status string
		charged              int
		stock                int64
	}{
		{"a charge", "pm_card_visa", "succeeded", 1, shopStock - 2},
		{"a decline", "pm_card_chargeDeclined", "failed", 0, shopStock},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.failAtCommit(test.status, "XX000", "1000")
			order := s.place(test.method)
			s.StartWorker(t)
			s.awaitJob("charge-order", order, `cardinality(errors) >= 1`)
			require.Equal(t, test.charged, s.charged(order))
			require.Equal(t, "pending", s.payment(order).Text("status"))
			require.Equal(t, "open", s.order(order).Text("status"))
			require.EqualValues(t, shopStock-2, s.OnHand(t, shopSKU))
			require.Zero(t, s.Count(t, jobOf+` AND state = 'completed'`, "charge-order", order))

			s.exec(`SELECT setval('test_commits', 1000)`)
			s.runNow("charge-order", order)
			s.alice.PaymentStatus(order, test.status)
			s.jobDone("charge-order", order)
			require.Equal(t, test.stock, s.OnHand(t, shopSKU))
			require.Equal(t, test.charged, s.charged(order))
			require.Len(t, s.attempts("confirm", order), 1, "the state of the intent is enough")
		})
	}
}

// Ensure a job that does not find its order waits for it, spending no attempt, and works once it is there: the order
// may come back from a backup. Nothing gives up on it.
func TestPaymentJobWaitsForItsOrder(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	order := s.place("pm_card_visa")
	for _, table := range []string{"payments", "order_lines", "orders"} {
		s.exec(`CREATE TABLE backup_` + table + ` AS SELECT * FROM ` + table)
		s.exec(`DELETE FROM ` + table)
	}
	s.StartWorker(t)
	s.awaitJob("charge-order", order, `state = 'scheduled' AND attempt = 0 AND metadata->>'snoozes' = '1'`)
	require.Empty(t, s.Sandbox.Attempts())

	for _, table := range []string{"orders", "order_lines", "payments"} {
		s.exec(`INSERT INTO ` + table + ` SELECT * FROM backup_` + table)
	}
	s.runNow("charge-order", order)
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
}

// Ensure a job from a newer release, whose arguments this worker may misread, fails visibly, asks nobody and stays for
// a newer worker.
func TestPaymentJobOfANewerReleaseStays(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	order := s.place("pm_card_visa")
	setSchema := `UPDATE river_job SET args = jsonb_set(args, '{schema}', $1::jsonb) WHERE kind = 'charge-order'`
	s.exec(setSchema, "99")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	s.awaitJob("charge-order", order, `errors[1]->>'error' LIKE '%schema 99%'`)
	require.Equal(t, "pending", s.payment(order).Text("status"))
	require.Empty(t, s.Sandbox.Attempts())

	s.exec(setSchema, "2")
	s.alice.PaymentStatus(order, "succeeded")
}

// Ensure the arguments of a job name an order and nothing else: no amount to trust and no personal data.
func TestPaymentJobCarriesIdsOnly(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	order := s.place("pm_card_visa")
	args := queryValue[map[string]any](s, `SELECT args FROM river_job WHERE kind = 'charge-order'`)
	require.Equal(t, map[string]any{"schema": 2.0, "tenant_id": "default", "order_id": order}, args)
}
