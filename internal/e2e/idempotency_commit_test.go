package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// failTransactions makes the first times transactions that write an order fail with an SQLSTATE, when they commit or at
// once. A sequence counts them, since it is the one thing that a rollback does not undo.
func failTransactions(t *testing.T, s *testkit.Service, sqlState, when string, times int) {
	t.Helper()
	s.Begin(t).
		Exec(`CREATE SEQUENCE test_tries`).
		Exec(fmt.Sprintf(`CREATE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('test_tries') <= %d THEN RAISE EXCEPTION 'forced' USING ERRCODE = '%s'; END IF;
			RETURN NULL;
		END $$`, times, sqlState)).
		Exec(`CREATE CONSTRAINT TRIGGER test_fail AFTER INSERT ON orders DEFERRABLE INITIALLY ` + when + `
			FOR EACH ROW EXECUTE FUNCTION test_fail()`).
		Commit()
}

// tries is how many transactions wrote an order, those that failed included.
func tries(t *testing.T, s *testkit.Service) (n int) {
	t.Helper()
	require.NoError(t, s.DB.QueryRow(t.Context(), `SELECT last_value FROM test_tries`).Scan(&n))
	return n
}

// Ensure a transaction that PostgreSQL undid for the sake of another runs again as a whole, claim included, and makes
// one order.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
func TestIdempotencyAnUndoneTransactionRunsAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sqlState, when string }{
		{"serialization failure at COMMIT", "40001", "DEFERRED"},
		{"deadlock at COMMIT", "40P01", "DEFERRED"},
		{"serialization failure at the statement", "40001", "IMMEDIATE"},
		{"deadlock at the statement", "40P01", "IMMEDIATE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startPatient(t)
			failTransactions(t, s, c.sqlState, c.when, 2)
			requireOneWinner(t, testkit.Receive(duplicates(3, "k", tea(), s.As(t, "alice")), 3))
			requireStored(t, s, 1)
			require.Equal(t, 3, tries(t, s))
			require.EqualValues(t, 8, s.OnHand(t, "TEA-001"))
		})
	}
}

// Ensure the tries are bounded: then the answer says to come back, nothing is left and the key is free.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
func TestIdempotencyATransactionThatIsAlwaysUndoneIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, sqlState := range []string{"40001", "40P01"} {
		t.Run(sqlState, func(t *testing.T) {
			t.Parallel()
			s := startPatient(t)
			failTransactions(t, s, sqlState, "DEFERRED", 1_000_000)
			alice := s.As(t, "alice")
			refused := place(alice, "k", tea())
			requireRefused(t, refused, http.StatusServiceUnavailable, "try_again")
			require.NotEmpty(t, refused.Header.Get("Retry-After"))
			requireStored(t, s, 0)
			require.Greater(t, tries(t, s), 1)
			s.Begin(t).Exec(`DROP TRIGGER test_fail ON orders`).Commit()
			requireUntouched(t, s, alice)
		})
	}
}

// Ensure a COMMIT that the server refuses for good is an error that left nothing, not an unknown outcome.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyACommitThatIsRefusedLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	failTransactions(t, s, "23514", "DEFERRED", 1)
	alice := s.As(t, "alice")
	requireRefused(t, place(alice, "k", tea()), http.StatusInternalServerError, "internal_error")
	requireUntouched(t, s, alice)
}
