package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Ensure a batch of the purge reads its own rows, and not all that has expired, while PostgreSQL does not know yet how many
// those are.
func TestPurgeReadsItsBatchOnly(t *testing.T) {
	t.Parallel()
	const batch = 10 // so small that reading the whole table would cost more
	s := newSaving(t)
	add := func(sign string) {
		s.exec(`INSERT INTO idempotency_keys (tenant_id, actor_id, operation, key, fingerprint, state, response_status,
				response_headers, response_body, created_at, expires_at)
			SELECT 't', 'a', 'o', '` + sign + `' || i, sha256('x'), 'completed', 201, '{}', '{}', now() - interval '2 days',
				now() ` + sign + ` i * interval '1 second'
			FROM generate_series(1, 5000) i`)
	}
	add("+")
	s.exec(`ANALYZE idempotency_keys`)
	add("-")
	require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		var removed, read int
		var next time.Time
		require.NoError(t, tx.QueryRow(t.Context(), purgeBatch, time.Time{}, batch).Scan(&removed, &next))
		require.Equal(t, batch, removed)
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT seq_tup_read + idx_tup_fetch
			FROM pg_stat_xact_user_tables WHERE relname = 'idempotency_keys'`).Scan(&read))
		require.LessOrEqual(t, read, 3*batch)
		return nil
	}))
}
