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
	return m.Gauges(telemetry.Gauge{
		Name: "orders.db.connections", About: "Connections of a pool: used, idle, and the most that it may have.",
		Label: "state", Fixed: []string{"pool", pool.Config().ConnConfig.RuntimeParams["application_name"]},
		Read: func(context.Context) (map[string]float64, error) {
			s := pool.Stat()
			return map[string]float64{
				"used": float64(s.AcquiredConns()), "idle": float64(s.IdleConns()), "max": float64(s.MaxConns()),
			}, nil
		},
	})
}

// The queries behind the gauges. They name the states that they want, because River's indexes begin with the state: a
// day of completed jobs is never looked through.
const (
	liveJobs   = `('available', 'pending', 'retryable', 'running', 'scheduled')`
	jobsByKind = ` FROM river_job WHERE kind IN ('charge-order', 'refund-charge') AND state IN `
	countJobs  = `SELECT state::text, count(*)` + jobsByKind +
		`('available', 'cancelled', 'discarded', 'pending', 'retryable', 'running', 'scheduled') GROUP BY 1`
	oldestJobs    = `SELECT kind, extract(epoch FROM now() - min(created_at))` + jobsByKind + liveJobs + ` GROUP BY 1`
	countPayments = `SELECT status, count(*) FROM payments WHERE status IN ('pending', 'unresolved') GROUP BY 1`
	countRefunds  = `SELECT status, count(*) FROM refunds WHERE status = 'pending' GROUP BY 1`
)

// workerGauges shows what waits: jobs, payments without an outcome, and expired keys. Every worker shows the same, since
// it is the database's.
func workerGauges(m *telemetry.Metrics, pool *pgxpool.Pool, store *postgres.Store) error {
	return errors.Join(poolGauges(m, pool), m.Gauges(
		telemetry.Gauge{
			Name: "orders.outbox.jobs", About: "Jobs of the outbox that are not completed, by River's state.", Label: "state",
			Read: counts(pool, countJobs, "available", "cancelled", "discarded", "pending", "retryable", "running", "scheduled"),
		},
		telemetry.Gauge{
			Name: "orders.outbox.oldest.age", About: "Age of the oldest live job of the outbox.", Unit: "s", Label: "kind",
			Read: counts(pool, oldestJobs, "charge-order", "refund-charge"),
		},
		telemetry.Gauge{
			Name: "orders.payments.open", About: "Payments without a known outcome.", Label: "status",
			Read: counts(pool, countPayments, "pending", "unresolved"),
		},
		telemetry.Gauge{
			Name: "orders.refunds.open", About: "Refunds without a known outcome.", Label: "status",
			Read: counts(pool, countRefunds, "pending"),
		},
		telemetry.Gauge{
			Name: "orders.idempotency.keys.expired", About: "Expired keys that the purge has not removed yet (counted to 100000).",
			Read: expired(store, func(b postgres.KeyBacklog) float64 { return float64(b.Expired) }),
		},
		telemetry.Gauge{
			Name: "orders.idempotency.keys.oldest.expired.age", About: "How long ago the oldest of them expired.", Unit: "s",
			Read: expired(store, func(b postgres.KeyBacklog) float64 { return b.Oldest.Seconds() }),
		},
	))
}

// expired reads one number of the backlog of expired keys.
func expired(store *postgres.Store, number func(postgres.KeyBacklog) float64) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (map[string]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
		defer cancel()
		b, err := store.ExpiredKeys(ctx, time.Now())
		if err != nil {
			return nil, err
		}
		return map[string]float64{"": number(b)}, nil
	}
}

// counts reads a query of a name and a number. A name that the query does not have is zero, not absent.
func counts(pool *pgxpool.Pool, query string, names ...string) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (map[string]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, gaugeTimeout)
		defer cancel()
		values := map[string]float64{}
		for _, name := range names {
			values[name] = 0
		}
		rows, _ := pool.Query(ctx, query)
		var name string
		var n float64
		if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { values[name] = n; return nil }); err != nil {
			return nil, err
		}
		return values, nil
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
