package postgres

import (
	"context"
	"fmt"
	"time"
)

// purgeBatch removes expired records, oldest first, by their full key. A record that a claim is replacing right now is
// locked and so skipped, as is one that another worker is removing. The condition stands twice on purpose: a record
// that was renewed between the look and the lock stays. MATERIALIZED: the look is made once, whatever the plan, or the limit
// would hold for each look.
const purgeBatch = `
WITH d AS MATERIALIZED (
	SELECT tenant_id, actor_id, operation, key FROM idempotency_keys
	WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency_keys k USING d
WHERE k.tenant_id = d.tenant_id AND k.actor_id = d.actor_id AND k.operation = d.operation AND k.key = d.key
	AND k.expires_at <= $1`

// PurgeKeys removes at most batch records that had expired at now, in a transaction of its own, and tells how many.
func (s *Store) PurgeKeys(ctx context.Context, now time.Time, batch int) (int, error) {
	tag, err := s.pool.Exec(ctx, purgeBatch, now, batch)
	if err != nil {
		return 0, fmt.Errorf("purge keys: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// KeyBacklog is what the purge has not reached yet.
type KeyBacklog struct {
	Expired int           // records, counted up to backlogMost
	Oldest  time.Duration // how long ago the oldest of them expired
}

// backlogMost bounds the count: beyond it the exact number no longer matters, and counting would cost.
const backlogMost = 100_000

// ExpiredKeys tells what had expired at now and is still there.
func (s *Store) ExpiredKeys(ctx context.Context, now time.Time) (b KeyBacklog, err error) {
	var oldest *time.Time
	err = s.pool.QueryRow(ctx, `
		SELECT count(*), min(expires_at) FROM (
			SELECT expires_at FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
		) e`, now, backlogMost).Scan(&b.Expired, &oldest)
	if err != nil {
		return KeyBacklog{}, fmt.Errorf("count expired keys: %w", err)
	}
	if oldest != nil {
		b.Oldest = now.Sub(*oldest)
	}
	return b, nil
}
