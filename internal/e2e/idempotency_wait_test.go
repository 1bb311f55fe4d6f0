package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// requireInProgress checks the answer of a wait that ran out: it says when to come back.
func requireInProgress(t *testing.T, a testkit.Answer) {
	t.Helper()
	requireRefused(t, a, http.StatusConflict, "idempotency_key_in_progress")
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
}

// Ensure a duplicate that waited long enough is told to come back, and that the key then works: it replays the winner.
func TestIdempotencyAWaitThatRunsOutLeavesTheKeyToTheWinner(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "IDEMPOTENCY_KEY_WAIT", "2s")
	other := s.Another(t)
	alice := s.As(t, "alice")
	held := s.HoldStock(t, "TEA-001")
	winner := placeLater(alice, "k", tea())
	s.AwaitBlockedOn(t, "FROM stock")

	requireInProgress(t, place(alice, "k", tea()))
	requireInProgress(t, place(other.As(t, "alice"), "k", tea()))
	requireStored(t, s, 0)
	held.Commit()
	first := testkit.Take(t, winner)
	requirePlaced(t, first)
	requireReplay(t, first, place(alice, "k", tea()))
	requireReplay(t, first, place(other.As(t, "alice"), "k", tea()))
	requireStored(t, s, 1)
}

// Ensure a setting of no wait at all still lets the first request in, at once.
func TestIdempotencyNoWaitIsAnAnswerAtOnceAndNotARefusalOfAll(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "IDEMPOTENCY_KEY_WAIT", "0s")
	alice := s.As(t, "alice")
	held := s.HoldStock(t, "TEA-001")
	winner := placeLater(alice, "k", tea())
	s.AwaitBlockedOn(t, "FROM stock")
	requireInProgress(t, place(alice, "k", tea()))
	held.Commit()
	requirePlaced(t, testkit.Take(t, winner))
}

const (
	// claimOfAnother is a key as a process of the previous release has it in its transaction: the index alone tells.
	claimOfAnother = `INSERT INTO idempotency_keys
		(tenant_id, actor_id, operation, key, fingerprint, state, created_at, expires_at)
		VALUES ('default', 'alice', 'place-order', 'k', sha256('another'), 'claimed', now(), now() + interval '1 hour')`
	completion = `UPDATE idempotency_keys SET state = 'completed', response_status = 201, response_headers = '{}',
		response_body = '{}'`
)

// Ensure a claim that another process rolls back leaves the key free for the request that waits for it.
func TestIdempotencyAForeignClaimThatRollsBackFreesTheKey(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	foreign := s.Begin(t).Exec(claimOfAnother)
	answer := placeLater(s.As(t, "alice"), "k", tea())
	s.AwaitBlockedOn(t, "idempotency_keys")
	require.Empty(t, answer)
	foreign.Rollback()
	requirePlaced(t, testkit.Take(t, answer))
	requireStored(t, s, 1)
}

// Ensure a wait for a claim of another process is bounded, never an error of the server, and that the key then works.
func TestIdempotencyAForeignClaimIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "IDEMPOTENCY_KEY_WAIT", "2s", "DB_LOCK_TIMEOUT", "50ms")
	alice := s.As(t, "alice")
	foreign := s.Begin(t).Exec(claimOfAnother)
	requireInProgress(t, place(alice, "k", tea()))
	foreign.Rollback()
	requirePlaced(t, place(alice, "k", tea()))
}

// Ensure a request that waited for another process compares fingerprints with the record that won.
//
// Standard: litespec/ext/concurrency#reject-conflicting-key-reuse
func TestIdempotencyAForeignClaimThatCommitsAnotherRequestIsAReuse(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	foreign := s.Begin(t).Exec(claimOfAnother)
	answer := placeLater(s.As(t, "alice"), "k", tea())
	s.AwaitBlockedOn(t, "idempotency_keys")
	foreign.Exec(completion).Commit()
	requireRefused(t, testkit.Take(t, answer), http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.Zero(t, s.Count(t, "orders"))
}

// Ensure a request that waited for the same request at another process replays what that one committed.
//
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyAForeignClaimThatCommitsTheSameRequestIsReplayed(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	// Taken out and put back by a transaction that has not ended: as if the winner were about to commit.
	s.Begin(t).Exec(`CREATE TABLE test_winner AS SELECT * FROM idempotency_keys`).Exec(`DELETE FROM idempotency_keys`).Commit()
	foreign := s.Begin(t).Exec(`INSERT INTO idempotency_keys SELECT * FROM test_winner`)
	answer := placeLater(alice, "k", tea())
	s.AwaitBlockedOn(t, "idempotency_keys")
	foreign.Commit()
	requireReplay(t, first, testkit.Take(t, answer))
	requireStored(t, s, 1)
}

// Ensure another request under a key that is at work waits for the outcome: a reuse where the winner commits, the next
// winner where it does not. Both at the instance of the winner and at another.
//
// Standard: litespec/ext/concurrency#reject-conflicting-key-reuse
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAnotherRequestWaitsForTheWinnersOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		onHand  int // once the winner gets at the stock; it wants two
		another bool
	}{
		{"committed, same instance", 10, false},
		{"committed, another instance", 10, true},
		{"rolled back, same instance", 1, false},
		{"rolled back, another instance", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startPatient(t)
			held := s.HoldStock(t, "TEA-001").Exec(`UPDATE stock SET on_hand = $1`, c.onHand)
			s.Stocked(t, "default", "TEA-001", int64(c.onHand)-10)
			winner := placeLater(s.As(t, "alice"), "k", tea())
			s.AwaitBlockedOn(t, "FROM stock")
			other := placeAnother(t, s, c.another)
			held.Commit()
			if c.onHand < 2 {
				requireRefused(t, testkit.Take(t, winner), http.StatusConflict, "insufficient_stock")
				requirePlaced(t, testkit.Take(t, other))
			} else {
				requirePlaced(t, testkit.Take(t, winner))
				requireRefused(t, testkit.Take(t, other), http.StatusUnprocessableEntity, "idempotency_key_reused")
			}
			requireStored(t, s, 1)
		})
	}
}

// placeAnother sends another request under the winner's key, to its instance or another, and returns once it waits.
func placeAnother(t *testing.T, s *testkit.Service, anotherInstance bool) <-chan testkit.Answer {
	t.Helper()
	if !anotherInstance {
		answer := placeLater(s.As(t, "alice"), "k", one())
		testkit.AwaitGoroutines(t, atTheGate, 1)
		return answer
	}
	answer := placeLater(s.Another(t).As(t, "alice"), "k", one())
	testkit.AwaitGoroutines(t, looksAgain, 1)
	return answer
}

// Ensure a table lock, such as that of a migration, is not taken for a key that is at work: the answer is try_again, once
// the statement's own limit has passed, and the key is free.
func TestIdempotencyALockedTableIsNotAKeyInProgress(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_LOCK_TIMEOUT", "50ms", "DB_MAX_CONNS", "1", "IDEMPOTENCY_KEY_WAIT", "10s")
	alice := s.As(t, "alice")
	requirePlaced(t, place(alice, "before", tea()))              // so that the connection has prepared its statements
	for _, mode := range []string{"SHARE", "ACCESS EXCLUSIVE"} { // of a CREATE INDEX, and of an ALTER TABLE
		held := s.Begin(t).Exec(`LOCK TABLE idempotency_keys IN ` + mode + ` MODE`)
		requireTryAgain(t, place(alice, "k", tea()))
		held.Rollback()
		requireStored(t, s, 1)
	}
	requirePlaced(t, place(alice, "k", tea()))
	requireStored(t, s, 2)
}

// Ensure a request waits for a table lock as long as any statement may, at the look for its key and at the insert.
func TestIdempotencyAClaimWaitsForALockedTable(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_MAX_CONNS", "1")
	alice := s.As(t, "alice")
	requirePlaced(t, place(alice, "before", tea()))
	for mode, statement := range map[string]string{
		"ACCESS EXCLUSIVE": "FROM idempotency_keys", "SHARE": "INSERT INTO idempotency_keys",
	} {
		held := s.Begin(t).Exec(`LOCK TABLE idempotency_keys IN ` + mode + ` MODE`)
		answer := placeLater(alice, mode[:5], tea())
		s.AwaitBlockedOn(t, statement)
		held.Rollback()
		requirePlaced(t, testkit.Take(t, answer))
	}
}
