package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// awaitRun waits for a run of a periodic job that s.PeriodicJobsDue lets the start of a worker bring.
func awaitRun(t *testing.T, s *testkit.Service, kind string) {
	t.Helper()
	testkit.Eventually(t, "run of "+kind, func() bool {
		return s.Count(t, `river_job WHERE kind = $1 AND state = 'completed'`, kind) > 0
	})
}

// runNow runs a periodic job and waits for its end.
func runNow(t *testing.T, s *testkit.Service, kind string) {
	t.Helper()
	awaitJob(t, s, s.Enqueue(t, kind))
}

func awaitJob(t *testing.T, s *testkit.Service, id int64) {
	t.Helper()
	testkit.Eventually(t, "end of the job", func() bool {
		return s.Count(t, `river_job WHERE id = $1 AND state = 'completed'`, id) == 1
	})
}

// expiredKeys adds n records of alice's that have expired: old-1 an hour ago, old-2 two, and so on. They lie in the
// table in no order of time.
func expiredKeys(t *testing.T, s *testkit.Service, n int) {
	t.Helper()
	expiredKeysEvery(t, s, n, time.Hour)
}

func expiredKeysEvery(t *testing.T, s *testkit.Service, n int, apart time.Duration) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO idempotency_keys (tenant_id, actor_id, operation, key, fingerprint, state, response_status,
			response_headers, response_body, created_at, expires_at)
		SELECT 'default', 'alice', 'place-order', 'old-' || i, sha256('x'), 'completed', 201, '{}', 'an old answer',
			now() - i * $2::interval - interval '72 hours', now() - i * $2::interval
		FROM generate_series(1, $1) i ORDER BY hashint4(i)`, n, apart)
	require.NoError(t, err)
}

// blockedWorkers selects the sessions of workers that wait for a lock.
const blockedWorkers = `pg_stat_activity
	WHERE datname = current_database() AND application_name = 'orders-worker' AND wait_event_type = 'Lock'`

const expiredRecords = `idempotency_keys WHERE expires_at <= now()`

// purgedBatch is what one DELETE on idempotency_keys removed.
type purgedBatch struct {
	Removed, Live  int
	Oldest, Newest time.Time
}

// recordBatches notes, in the database and in the transaction of each, every DELETE on idempotency_keys.
func recordBatches(t *testing.T, s *testkit.Service) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `
		CREATE TABLE test_batches (no bigint GENERATED ALWAYS AS IDENTITY, removed bigint, live bigint,
			oldest timestamptz, newest timestamptz);
		CREATE FUNCTION test_note_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			INSERT INTO test_batches (removed, live, oldest, newest)
			SELECT count(*), count(*) FILTER (WHERE expires_at > clock_timestamp()), min(expires_at), max(expires_at)
			FROM gone HAVING count(*) > 0;
			RETURN NULL;
		END $$;
		CREATE TRIGGER test_note_batch AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS gone
			FOR EACH STATEMENT EXECUTE FUNCTION test_note_batch()`)
	require.NoError(t, err)
}

func purgedBatches(t *testing.T, s *testkit.Service) (all []purgedBatch) {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT removed, live, oldest, newest FROM test_batches ORDER BY no`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var b purgedBatch
		require.NoError(t, rows.Scan(&b.Removed, &b.Live, &b.Oldest, &b.Newest))
		all = append(all, b)
	}
	require.NoError(t, rows.Err())
	return all
}
