package postgres

import (
	"context"
	"fmt"
	"time"
)

// purgeBatch removes expired records, oldest first, by their full key. Records that a request is replacing or another
// worker is removing are locked and skipped (SKIP LOCKED). The expiry is checked twice on purpose, so that a record
// that was renewed between the lookup and the lock is kept. The second check is bounded by the batch, because otherwise
// each batch would read all expired records. MATERIALIZED makes PostgreSQL run the lookup only once, so that the limit
// applies to the whole batch.
const purgeBatch = `
WITH d AS MATERIALIZED (
	SELECT tenant_id, actor_id, operation, key, expires_at FROM idempotency_keys
	WHERE expires_at >= $1 AND expires_at <= now() ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM idempotency_keys k USING d
	WHERE k.tenant_id = d.tenant_id AND k.actor_id = d.actor_id AND k.operation = d.operation AND k.key = d.key
		AND k.expires_at >= $1 AND k.expires_at <= (SELECT max(expires_at) FROM d)
	RETURNING k.expires_at
)
SELECT count(*), coalesce(max(expires_at), $1) FROM gone`

// PurgeKeys removes at most batch expired records, the oldest first, in a transaction of its own. It starts with
// records that expired at from, so that a batch does not scan the dead index entries of earlier batches, which remain
// while another session has an older snapshot. It returns the number of removed records and where the next batch
// starts. Only the database's clock decides what has expired.
func (s *Store) PurgeKeys(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error) {
	if err := s.pool.QueryRow(ctx, purgeBatch, from, batch).Scan(&removed, &next); err != nil {
		return 0, from, fmt.Errorf("purge keys: %w", err)
	}
	return removed, next, nil
}

// KeyBacklog is the expired records that are not removed yet.
type KeyBacklog struct {
	Expired int           // records, counted up to backlogMost
	Oldest  time.Duration // how long ago the oldest of them expired
}

// backlogMost bounds the count, because counting is expensive and a larger number is no more useful.
const backlogMost = 100_000

// ExpiredKeys returns the backlog of expired records, by the database's clock.
func (s *Store) ExpiredKeys(ctx context.Context) (b KeyBacklog, err error) {
	var oldest float64
	err = s.pool.QueryRow(ctx, `
		SELECT count(*), coalesce(extract(epoch FROM now() - min(expires_at)), 0)::float8 FROM (
			SELECT expires_at FROM idempotency_keys WHERE expires_at <= now() ORDER BY expires_at LIMIT $1
		) e`, backlogMost).Scan(&b.Expired, &oldest)
	if err != nil {
		return KeyBacklog{}, fmt.Errorf("count expired keys: %w", err)
	}
	b.Oldest = time.Duration(oldest * float64(time.Second))
	return b, nil
}
