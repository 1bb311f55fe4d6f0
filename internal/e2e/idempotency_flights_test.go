package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure the writes of a keyed request go with its COMMIT, in one flight, in their order, and the COMMIT last; that the turn of
// the key comes before the first lock; and that a replay is one query.
func TestIdempotencyWritesGoWithTheCommit(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.StopAPI(t)
	wire := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"], s.Env["DB_MAX_CONNS"] = wire.URL, "1"
	s.StartAPI(t)
	alice := s.As(t, "alice")
	look := []string{`^SELECT fingerprint, .*FROM idempotency_keys`}

	wire.Record()
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	requireFlights(t, wire.Flights("orders-api"),
		look,
		[]string{
			`^begin`, `^SELECT now`, `pg_try_advisory_xact_lock`, `NOT EXISTS .*FROM idempotency_keys`,
			`FROM products`, `FROM stock .*FOR UPDATE`,
		},
		[]string{
			`UPDATE stock`, `INSERT INTO orders`, `INSERT INTO order_lines`, `INSERT INTO payments`, `INSERT INTO river_job`,
			`INSERT INTO idempotency_keys`, `^commit$`,
		})

	wire.Record()
	requireReplay(t, first, place(alice, "k", tea()))
	requireFlights(t, wire.Flights("orders-api"), look)
}

// requireFlights checks what was sent together, in its order.
func requireFlights(t *testing.T, sent [][]string, wanted ...[]string) {
	t.Helper()
	// The wake-up of the workers goes after the commit, on any connection.
	sent = slices.DeleteFunc(sent, func(f []string) bool { return strings.Contains(f[0], "pg_notify") })
	require.Len(t, sent, len(wanted), "flights: %q", sent)
	for i, flight := range wanted {
		require.Len(t, sent[i], len(flight), "statements of flight %d: %q", i+1, sent[i])
		for j, pattern := range flight {
			require.Regexp(t, `(?s)`+pattern, sent[i][j], "statement %d of flight %d", j+1, i+1)
		}
	}
}

// Ensure a replay waits for no row: neither for the key's, nor for any other, which others have locked.
//
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyAReplayTakesNoRowLock(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	held := s.Begin(t).
		Exec(`SELECT FROM idempotency_keys FOR UPDATE`).
		Exec(`LOCK TABLE idempotency_keys, orders, order_lines, payments, products, stock, river_job IN EXCLUSIVE MODE`)
	requireReplay(t, first, place(alice, "k", tea())) // held up, it would end with the caller's own deadline
	held.Rollback()
}

// Ensure a replay writes nothing: the transaction that has found the record has no number, which PostgreSQL gives with the
// first write or row lock.
func TestIdempotencyAReplayWritesNothing(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	order := place(alice, "k", tea())
	requirePlaced(t, order)
	cancel := func(int) testkit.Answer {
		return post(alice, "/v1/orders/"+order.Text("id")+"/cancellation", "c", `{}`, "If-Match", order.Header.Get("ETag"))
	}
	cancelled := cancel(0)
	require.Equal(t, 200, cancelled.Status, string(cancelled.Body))
	held := s.Begin(t).Exec(`LOCK TABLE orders IN ACCESS EXCLUSIVE MODE`)
	again := testkit.Together(1, cancel)
	s.AwaitBlockedOn(t, "FROM orders") // it has looked at the key, and asks whose order it is
	require.Equal(t, 1, s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-api'
		AND wait_event_type = 'Lock' AND backend_xid IS NULL`))
	held.Rollback()
	requireReplay(t, cancelled, testkit.Take(t, again))
}

// Ensure a stale save in the last flight takes everything with it, the order, its job and its key, and that the request
// then runs again as a whole; and that it gives up in bounds.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestIdempotencyAStaleSaveBesideTheCommitTakesAllWithIt(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	// A version that another writer had changed: the update finds no row.
	s.Begin(t).
		Exec(`CREATE SEQUENCE test_tries`).
		Exec(`CREATE FUNCTION test_stale() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('test_tries') <= 7 THEN RETURN NULL; END IF;
			RETURN NEW;
		END $$`).
		Exec(`CREATE TRIGGER test_stale BEFORE UPDATE ON stock FOR EACH ROW EXECUTE FUNCTION test_stale()`).
		Commit()
	alice := s.As(t, "alice")
	requireTryAgain(t, place(alice, "k", tea()))
	require.Equal(t, 5, tries(t, s))
	requireStored(t, s, 0)
	require.EqualValues(t, 10, s.OnHand(t, "TEA-001"))

	requireOneWinner(t, testkit.Receive(duplicates(3, "k", tea(), alice), 3))
	require.Equal(t, 8, tries(t, s))
	requireStored(t, s, 1)
	require.EqualValues(t, 8, s.OnHand(t, "TEA-001"))
}

// Ensure any number of duplicates that wait for a slow winner all get its answer, while others are served.
//
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyTwoThousandDuplicatesGetTheAnswerOfASlowWinner(t *testing.T) {
	t.Parallel()
	n := 2000
	if testing.Short() {
		n = 200
	}
	s := startPatient(t, "DB_MAX_CONNS", "8")
	s.Product(t, "MUG-001", 1250, 100)
	alice, bob := s.As(t, "alice"), s.As(t, "bob")
	plain, end := leaving(alice) // a client of its own, with a connection for each request
	t.Cleanup(end)
	earlier := bob.Place("earlier", testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(n, "k", tea(), plain)
	s.AwaitBlockedOn(t, "FROM stock")
	testkit.AwaitGoroutines(t, atTheGate, n-1)

	requireOthersServed(t, bob, earlier)
	require.Empty(t, answers, "the winner was held and a duplicate was answered")
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, n))
	require.Equal(t, 1, s.Count(t, "orders WHERE customer_id = 'alice'"))
	require.Zero(t, s.Count(t, "idempotency_keys WHERE actor_id = 'alice' AND state <> 'completed'"))
}
