package postgres

import (
	"context"
	"fmt"
	"time"
)

// purgeBatch removes expired records, oldest first, by their full key. A record that a request is replacing right now is
// locked and so skipped, as is one that another worker is removing. The expiry stands twice on purpose: a record that was
// renewed between the look and the lock stays. The second time it ends with the batch, or each batch would read all that has
// expired. MATERIALIZED: the look is made once, whatever the plan, or the limit would hold for each look.
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

// PurgeKeys removes at most batch expired records, the oldest first, in a transaction of its own. It begins with those
// that expired at from, so that the next batch does not walk again over what this one removed: the index keeps dead
// entries for as long as another session has an older snapshot. It returns how many it removed and where to go on.
// What has expired is decided by the database's clock alone.
func (s *Store) PurgeKeys(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error) {
	if err := s.pool.QueryRow(ctx, purgeBatch, from, batch).Scan(&removed, &next); err != nil {
		return 0, from, fmt.Errorf("purge keys: %w", err)
	}
	return removed, next, nil
}

// KeyBacklog is what the purge has not reached yet.
type KeyBacklog struct {
	Expired int           // records, counted up to backlogMost
	Oldest  time.Duration // how long ago the oldest of them expired
}

// backlogMost bounds the count: beyond it the exact number no longer matters, and counting would cost.
const backlogMost = 100_000

// ExpiredKeys tells what has expired, by the database's clock, and is still there.
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
