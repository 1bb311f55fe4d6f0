package postgres

import (
	"context"
	"fmt"
	"time"
)

// purgeEvents is purgeBatch for the ids of provider events. Their expiry never changes, so it is checked only once.
const purgeEvents = `
WITH d AS MATERIALIZED (
	SELECT tenant_id, event_id FROM provider_events
	WHERE expires_at >= $1 AND expires_at <= now() ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM provider_events e USING d WHERE e.tenant_id = d.tenant_id AND e.event_id = d.event_id
	RETURNING e.expires_at
)
SELECT count(*), coalesce(max(expires_at), $1) FROM gone`

// PurgeEvents removes at most batch expired ids of provider events, the oldest first, in a transaction of its own. It
// starts with ids that expired at from. It returns the number of removed ids and where the next batch starts. Only the
// database's clock decides what has expired.
func (s *Store) PurgeEvents(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error) {
	if err := s.pool.QueryRow(ctx, purgeEvents, from, batch).Scan(&removed, &next); err != nil {
		return 0, from, fmt.Errorf("purge provider events: %w", err)
	}
	return removed, next, nil
}
