package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure an expired key can be used again at any moment of the purge that is about to remove it. Each order of the two
// is forced: whoever comes first is held in the middle of its transaction.
//
// Standard: litespec/ext/concurrency#bound-expired-record-cleanup
func TestPurgeRunsWhileAnExpiredKeyIsReused(t *testing.T) {
	t.Parallel()
	t.Run("the claim came first", func(t *testing.T) {
		t.Parallel()
		s := startPatient(t)
		s.StartWorker(t)
		expiredKeys(t, s, 2)
		held := holdCommits(t, s, goOn)
		claim := placeLater(s.As(t, "alice"), "old-1", tea())
		s.AwaitBlockedOn(t, "commit")

		runNow(t, s, testkit.JobPurge) // which neither waits for the claim nor removes what it has replaced
		require.Equal(t, 1, s.Count(t, expiredRecords))
		held.Commit()
		requireReusedFor(t, s, "old-1", testkit.Take(t, claim))
	})
	t.Run("the claim came first and rolls back", func(t *testing.T) {
		t.Parallel()
		s := startPatient(t)
		s.StartWorker(t)
		expiredKeys(t, s, 1)
		held := holdCommits(t, s, refuse)
		claim := placeLater(s.As(t, "alice"), "old-1", tea())
		s.AwaitBlockedOn(t, "commit")
		runNow(t, s, testkit.JobPurge)
		held.Commit()
		requireRefused(t, testkit.Take(t, claim), http.StatusInternalServerError, "internal_error")
		require.Equal(t, 1, s.Count(t, expiredRecords))
		runNow(t, s, testkit.JobPurge)
		require.Zero(t, s.Count(t, "idempotency_keys"))
	})
	t.Run("the purge came first", func(t *testing.T) {
		t.Parallel()
		s := startPatient(t)
		s.StartWorker(t)
		expiredKeys(t, s, 1)
		purge := holdPurge(t, s, "AFTER", "STATEMENT") // which has removed the record and has not committed
		claim := placeLater(s.As(t, "alice"), "old-1", tea())
		s.AwaitBlockedOn(t, "idempotency_keys")
		require.Empty(t, claim, "an order was placed under a key that was still there")
		purge.release()
		requireReusedFor(t, s, "old-1", testkit.Take(t, claim))
	})
	t.Run("the claim came between the purge's look and its removal", func(t *testing.T) {
		t.Parallel()
		s := startPatient(t)
		s.StartWorker(t)
		expiredKeys(t, s, 200)
		purge := holdPurge(t, s, "BEFORE", "ROW") // which has looked, and is about to remove the oldest record
		claim := placeLater(s.As(t, "alice"), "old-1", tea())
		testkit.Eventually(t, "claim that is answered or waits for the purge", func() bool {
			return len(claim) == 1 || s.Count(t, waitingOnKeys) > 0
		})
		purge.release()
		requireReusedFor(t, s, "old-1", testkit.Take(t, claim))
	})
}

const waitingOnKeys = `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-api'
	AND wait_event_type = 'Lock' AND query LIKE '%idempotency_keys%'`

// requireReusedFor checks that the answer is of a new order, that the key now replays it, and that no purge removes it.
func requireReusedFor(t *testing.T, s *testkit.Service, key string, a testkit.Answer) {
	t.Helper()
	requirePlaced(t, a)
	runNow(t, s, testkit.JobPurge)
	require.Zero(t, s.Count(t, expiredRecords))
	requireReplay(t, a, place(s.As(t, "alice"), key, tea()))
	requireStored(t, s, 1)
}

// heldPurge is a run of the purge that is held inside its DELETE.
type heldPurge struct{ release func() }

// holdPurge starts a run and returns once a trigger holds it at the given moment of its DELETE.
func holdPurge(t *testing.T, s *testkit.Service, when, level string) heldPurge {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `
		CREATE FUNCTION test_hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM pg_advisory_xact_lock_shared(4711);
			IF TG_LEVEL = 'ROW' THEN RETURN OLD; END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER test_hold `+when+` DELETE ON idempotency_keys FOR EACH `+level+` EXECUTE FUNCTION test_hold()`)
	require.NoError(t, err)
	held := s.Begin(t).Exec(`SELECT pg_advisory_xact_lock(4711)`)
	id := s.Enqueue(t, testkit.JobPurge)
	testkit.Eventually(t, "purge in the middle of its DELETE", func() bool { return s.Count(t, blockedWorkers) == 1 })
	return heldPurge{func() {
		held.Commit()
		awaitJob(t, s, id)
	}}
}
