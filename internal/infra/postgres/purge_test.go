package postgres

import (
	"encoding/json"
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
	s.addKeys("+")
	s.exec(`ANALYZE idempotency_keys`)
	s.addKeys("-")
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

// addKeys adds 5,000 keys in random order, a second apart: + for keys that have not expired, - for expired ones.
func (s saving) addKeys(sign string) {
	s.exec(`INSERT INTO idempotency_keys (tenant_id, actor_id, operation, key, fingerprint, state, response_status,
			response_headers, response_body, created_at, expires_at)
		SELECT 't', 'a', 'o', '` + sign + `' || i, sha256('x'), 'completed', 201, '{}', '{}', now() - interval '2 days',
			now() ` + sign + ` i * interval '1 second'
		FROM generate_series(1, 5000) i ORDER BY random()`)
}

// Ensure a batch begins where the last one ended while another session holds an older snapshot. PostgreSQL then keeps the
// index entries of all removed keys, and a batch that began with the oldest key would read them again.
func TestPurgeBeginsWhereTheLastBatchEnded(t *testing.T) {
	t.Parallel()
	const batch, batches = 100, 40
	s := newSaving(t)
	s.addKeys("-")
	s.exec(`ANALYZE idempotency_keys`)
	holder, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer holder.Rollback(t.Context()) //nolint:errcheck // it has changed nothing
	_, err = holder.Exec(t.Context(), `SELECT count(*) FROM idempotency_keys`)
	require.NoError(t, err)

	var next time.Time
	first := s.blocksOfBatch(next, batch)
	for range batches {
		removed, end, err := s.PurgeKeys(t.Context(), next, batch)
		require.NoError(t, err)
		require.Equal(t, batch, removed)
		next = end
	}
	require.Greater(t, s.blocksOfBatch(time.Time{}, batch), 3*first, "the snapshot does not keep the removed keys")
	require.Less(t, s.blocksOfBatch(next, batch), 2*first)
}

// blocksOfBatch is how many blocks a batch reads, which is then rolled back.
func (s saving) blocksOfBatch(from time.Time, batch int) int {
	s.t.Helper()
	tx, err := s.pool.Begin(s.t.Context())
	require.NoError(s.t, err)
	defer tx.Rollback(s.t.Context()) //nolint:errcheck // on purpose
	var raw []byte
	require.NoError(s.t, tx.QueryRow(s.t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+purgeBatch,
		pgx.QueryExecModeSimpleProtocol, from, batch).Scan(&raw))
	var plans []struct {
		Plan struct {
			Hit int `json:"Shared Hit Blocks"` //nolint:tagliatelle // PostgreSQL's name for it
		}
	}
	require.NoError(s.t, json.Unmarshal(raw, &plans))
	return plans[0].Plan.Hit
}
