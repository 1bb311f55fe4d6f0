package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
)

// orphans finds undecided charges and refunds that have no live job. A job is live in every state except the final
// ones. The join is on equality, so that PostgreSQL can use a hash join: after an outage of the provider there are many
// of both, and an index lookup for each would take hours.
const orphans = `
WITH waiting AS (
	SELECT 'charge-order' AS kind, tenant_id, order_id, NULL::uuid AS refund_id, updated_at AS since
	FROM payments WHERE status IN ('pending', 'unresolved') AND updated_at < $1
	UNION ALL
	SELECT 'refund-charge', tenant_id, order_id, id, created_at
	FROM refunds WHERE status = 'pending' AND created_at < $1
)
SELECT tenant_id, order_id, refund_id FROM waiting w
WHERE NOT EXISTS (
	SELECT FROM river_job j WHERE j.kind = w.kind
		AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled')
		AND j.args->>'tenant_id' = w.tenant_id AND j.args->>'order_id' = w.order_id::text
		AND coalesce(j.args->>'refund_id', '') = coalesce(w.refund_id::text, '')
)
ORDER BY since LIMIT $2`

// oneAtATime takes an advisory lock, so that a run waits for a concurrent one and then sees its jobs.
const oneAtATime = `SELECT pg_advisory_xact_lock(hashtextextended('reconcile-payments', 0))`

// hashJoin keeps PostgreSQL from a nested loop over all pairs of waiting payments and live jobs. It would choose one after a
// burst of jobs that no ANALYZE has counted yet, and the search would never end within the statement's timeout.
const hashJoin = `SET LOCAL enable_nestloop = off`

// Orphans implements app.Outbox.
func (t transaction) Orphans(ctx context.Context, before time.Time, limit int) ([]app.Orphan, error) {
	tx := t.s.Immediate()
	if _, err := tx.Exec(ctx, oneAtATime); err != nil {
		return nil, fmt.Errorf("wait for the concurrent run: %w", err)
	}
	if _, err := tx.Exec(ctx, hashJoin); err != nil {
		return nil, fmt.Errorf("prepare the search for orphans: %w", err)
	}
	rows, _ := tx.Query(ctx, orphans, before, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o app.Orphan, err error) {
		var refund *uuid.UUID
		err = row.Scan(&o.Ref.Tenant, &o.Ref.OrderID, &refund)
		if refund != nil {
			o.Refund = *refund
		}
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("find orphans: %w", err)
	}
	return list, nil
}
