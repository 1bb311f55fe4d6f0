package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/telemetry"
	"example.com/orders/migrations"
)

// gaugeTimeout bounds the queries behind one reading of /metrics.
const gaugeTimeout = 3 * time.Second

// poolGauges shows the connections of this process's pool, by state.
func poolGauges(m *telemetry.Metrics, pool *pgxpool.Pool) error {
	return m.Gauges("orders.db.connections", "state", func(context.Context) (map[string]float64, error) {
		s := pool.Stat()
		return map[string]float64{
			"used": float64(s.AcquiredConns()), "idle": float64(s.IdleConns()), "max": float64(s.MaxConns()),
		}, nil
	}, "pool", pool.Config().ConnConfig.RuntimeParams["application_name"])
}

// workerGauges shows what waits: jobs, payments without an outcome, and expired keys.
func workerGauges(m *telemetry.Metrics, pool *pgxpool.Pool, store *postgres.Store) error {
	return errors.Join(
		poolGauges(m, pool),
		m.Gauges("orders.outbox.jobs", "state", counts(pool, `SELECT state::text, count(*) FROM river_job
			WHERE kind IN ('charge-order', 'refund-charge') AND state <> 'completed' GROUP BY 1`)),
		m.Gauges("orders.outbox.oldest.age", "job", counts(pool, `
			SELECT kind, extract(epoch FROM now() - min(created_at)) FROM river_job
			WHERE kind IN ('charge-order', 'refund-charge')
				AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled') GROUP BY 1`)),
		m.Gauges("orders.payments.open", "status", counts(pool,
			`SELECT status, count(*) FROM payments WHERE status IN ('pending', 'unresolved') GROUP BY 1`)),
		m.Gauges("orders.refunds.open", "status", counts(pool,
			`SELECT status, count(*) FROM refunds WHERE status = 'pending' GROUP BY 1`)),
		m.Gauges("orders.idempotency.keys.expired", "", func(ctx context.Context) (map[string]float64, error) {
			b, err := expired(ctx, store)
			return map[string]float64{"": float64(b.Expired)}, err
		}),
		m.Gauges("orders.idempotency.keys.oldest.expired.age", "", func(ctx context.Context) (map[string]float64, error) {
			b, err := expired(ctx, store)
			return map[string]float64{"": b.Oldest.Seconds()}, err
		}),
	)
}

func expired(ctx context.Context, store *postgres.Store) (postgres.KeyBacklog, error) {
	ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
	defer cancel()
	return store.ExpiredKeys(ctx, time.Now())
}

// counts reads a query of a name and a number.
func counts(pool *pgxpool.Pool, query string) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (map[string]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
		defer cancel()
		rows, _ := pool.Query(ctx, query)
		values := map[string]float64{}
		var name string
		var n float64
		_, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { values[name] = n; return nil })
		return values, err
	}
}

// databaseReady asks for an answering database with the schema that this binary was made for.
func databaseReady(ctx context.Context, pool *pgxpool.Pool) error {
	pending, err := migrations.Pending(ctx, pool)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if pending {
		return errors.New("migrations are pending")
	}
	return nil
}
