package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/postgres"
)

const (
	expire = `UPDATE idempotency_keys SET created_at = now() - interval '73 hours', expires_at = now() - interval '1 hour'`
	// purge removes as purge-idempotency-keys does, in a transaction that the test can hold.
	purge = `DELETE FROM idempotency_keys WHERE expires_at <= now()`
)

// one is another request than tea.
func one() string { return testkit.OrderBody("pm_card_visa", "TEA-001", "1") }

// startExpired starts a service with one record that has expired.
func startExpired(t *testing.T) (*testkit.Service, *testkit.Caller, testkit.Answer) {
	t.Helper()
	s := startPatient(t)
	alice := s.As(t, "alice")
	old := place(alice, "k", tea())
	requirePlaced(t, old)
	s.Begin(t).Exec(expire).Commit()
	return s, alice, old
}

// requireReused checks that the key now belongs to the new request and that both orders stand.
func requireReused(t *testing.T, s *testkit.Service, alice *testkit.Caller, old, fresh testkit.Answer) {
	t.Helper()
	requirePlaced(t, fresh)
	require.NotEqual(t, old.Text("id"), fresh.Text("id"))
	requireReplay(t, fresh, place(alice, "k", one()))
	requireRefused(t, place(alice, "k", tea()), http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.Equal(t, 2, s.Count(t, "orders"))
	require.Equal(t, 1, s.Count(t, "idempotency_keys WHERE expires_at > now() + interval '71 hours'"))
	require.Equal(t, 1, s.Count(t, "idempotency_keys"))
}

// Ensure an expired record that cleanup has not reached is replaced: the key is free for any request.
func TestIdempotencyAnExpiredRecordIsReplaced(t *testing.T) {
	t.Parallel()
	s, alice, old := startExpired(t)
	requireReused(t, s, alice, old, place(alice, "k", one()))
}

// Ensure duplicates that meet at an expired record make one order, at two instances too.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
func TestIdempotencyDuplicatesAtAnExpiredRecordMakeOneOrder(t *testing.T) {
	t.Parallel()
	s, alice, _ := startExpired(t)
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(10, "k", one(), alice, s.Another(t).As(t, "alice"))
	testkit.AwaitGoroutines(t, atTheGate, 8)
	s.AwaitBlockedOn(t, "FROM stock")
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 10))
	require.Equal(t, 2, s.Count(t, "orders"))
}

// Ensure a replacement that fails leaves the expired record as it was.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAFailedReplacementIsUndone(t *testing.T) {
	t.Parallel()
	s, alice, old := startExpired(t)
	refused := place(alice, "k", testkit.OrderBody("pm_card_visa", "TEA-001", "11"))
	requireRefused(t, refused, http.StatusConflict, "insufficient_stock")
	require.Equal(t, 1, s.Count(t, "idempotency_keys WHERE state = 'completed' AND expires_at < now()"))
	requireReused(t, s, alice, old, place(alice, "k", one()))
}

// Ensure a claim that meets cleanup in the middle of removing the record waits and then takes the key.
func TestIdempotencyAClaimBehindCleanupTakesTheKey(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name string
		of   func(*testkit.Held)
	}{{"removed", (*testkit.Held).Commit}, {"not removed", (*testkit.Held).Rollback}} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			s, alice, old := startExpired(t)
			cleanup := s.Begin(t).Exec(purge)
			fresh := placeLater(alice, "k", one())
			s.AwaitBlockedOn(t, "idempotency_keys")
			end.of(cleanup)
			requireReused(t, s, alice, old, testkit.Take(t, fresh))
		})
	}
}

// Ensure cleanup that meets a transaction which has replaced the record, and has not committed, leaves it alone: the
// service's own skips it, and one that waits for it finds that it has been renewed.
func TestIdempotencyCleanupBehindAClaimLeavesTheKey(t *testing.T) {
	t.Parallel()
	s, alice, old := startExpired(t)
	held := holdCommits(t, s, goOn)
	fresh := placeLater(alice, "k", one())
	s.AwaitBlockedOn(t, "commit")
	require.Zero(t, purgeKeys(t, s))
	patientPurge := testkit.Together(1, func(int) int64 {
		tag, err := s.DB.Exec(t.Context(), purge)
		if err != nil {
			return -1
		}
		return tag.RowsAffected()
	})
	testkit.Eventually(t, "cleanup that waits", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query = $1`, purge) == 1
	})
	held.Commit()
	require.Zero(t, testkit.Take(t, patientPurge), "removed a record that had been renewed")
	requireReused(t, s, alice, old, testkit.Take(t, fresh))
	require.Zero(t, purgeKeys(t, s))
}

// purgeKeys runs a batch of the service's own cleanup.
func purgeKeys(t *testing.T, s *testkit.Service) int {
	t.Helper()
	c, err := config.LoadAPI(func(name string) (string, bool) { v, ok := s.Env[name]; return v, ok })
	require.NoError(t, err)
	telemetry := s.Metrics["api"]
	pool, err := postgres.Open(t.Context(), c.Database, "orders-worker", telemetry.Traces)
	require.NoError(t, err)
	defer pgtest.Close(t, pool)
	store := postgres.NewStore(pool, nil, postgres.Settings{}, telemetry.Metrics, telemetry.Traces)
	removed, _, err := store.PurgeKeys(t.Context(), time.Time{}, 100)
	require.NoError(t, err)
	return removed
}
