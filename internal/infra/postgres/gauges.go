package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/internal/infra/telemetry"
)

// gaugeTimeout bounds all queries of one /metrics request. Prometheus waits ten seconds, so it still gets the other
// metrics when the database is down.
const gaugeTimeout = 3 * time.Second

// PoolGauges shows the connections of this process's pool, by state, and whether the database accepts writes. That
// query runs over probe, a separate connection that works while the pool is exhausted.
func PoolGauges(m *telemetry.Metrics, pool, probe *pgxpool.Pool) error {
	return m.Gauges(gaugeTimeout, telemetry.Gauge{
		Name: "orders.db.connections", About: "Connections of a pool: used, idle, and its maximum.",
		Label: "state", Fixed: []string{"pool", pool.Config().ConnConfig.RuntimeParams["application_name"]},
		Read: func(context.Context) (map[string]float64, error) {
			s := pool.Stat()
			return map[string]float64{
				"used": float64(s.AcquiredConns()), "idle": float64(s.IdleConns()), "max": float64(s.MaxConns()),
			}, nil
		},
	}, telemetry.Gauge{
		Name: "orders.db.writable", About: "Whether the database accepts writes: 1, or 0 if it is read-only, for example a standby.",
		Read: func(ctx context.Context) (map[string]float64, error) {
			writable, err := Writable(ctx, probe)
			if err == nil && !writable {
				return map[string]float64{"": 0}, nil
			}
			return map[string]float64{"": 1}, err
		},
	})
}

// The queries of the gauges. They list the states to count, because River's indexes begin with the state: this avoids a
// scan of all completed jobs.
const (
	liveJobs   = `('available', 'pending', 'retryable', 'running', 'scheduled')`
	jobsByKind = ` FROM river_job WHERE kind IN ('charge-order', 'refund-charge', 'settle-payment') AND state IN `
	countJobs  = `SELECT state::text, count(*)` + jobsByKind +
		`('available', 'cancelled', 'discarded', 'pending', 'retryable', 'running', 'scheduled') GROUP BY 1`
	oldestJobs    = `SELECT kind, extract(epoch FROM now() - min(created_at))` + jobsByKind + liveJobs + ` GROUP BY 1`
	openPayments  = ` FROM payments WHERE status IN ('pending', 'unresolved')`
	countPayments = `SELECT CASE refusal WHEN '' THEN 'pending' ELSE 'refused' END, count(*)` + openPayments + ` GROUP BY 1`
	oldestPayment = `SELECT '', coalesce(extract(epoch FROM now() - min(created_at)), 0)` + openPayments + ` AND refusal = ''`
	openUnmatched = `SELECT kind, count(*) FROM unmatched_charges WHERE returned_at IS NULL GROUP BY 1`
	countRefunds  = `SELECT status, count(*) FROM refunds WHERE status = 'pending' GROUP BY 1`
)

// BacklogGauges shows the numbers of waiting jobs, undecided payments and expired keys. Every worker shows the same
// values, because they come from the database.
func BacklogGauges(m *telemetry.Metrics, pool *pgxpool.Pool, store *Store) error {
	var backlog KeyBacklog // queried by the first of its two gauges; gauges are read one after another
	return m.Gauges(gaugeTimeout,
		telemetry.Gauge{
			Name: "orders.outbox.jobs", About: "Uncompleted outbox jobs, by River's state.", Label: "state",
			Read: counts(pool, countJobs, "available", "cancelled", "discarded", "pending", "retryable", "running", "scheduled"),
		},
		telemetry.Gauge{
			Name: "orders.outbox.oldest.age", About: "Age of the oldest live outbox job.", Unit: "s", Label: "kind",
			Read: counts(pool, oldestJobs, "charge-order", "refund-charge", "settle-payment"),
		},
		telemetry.Gauge{
			Name: "orders.payments.open", Label: "status",
			About: "Pending payments; refused: the provider rejects the charge for a reason that an operator can fix.",
			Read:  counts(pool, countPayments, "pending", "refused"),
		},
		telemetry.Gauge{
			Name: "orders.payments.oldest.age", Unit: "s",
			About: "Age of the oldest pending payment that is not refused.",
			Read:  counts(pool, oldestPayment),
		},
		telemetry.Gauge{
			Name: "orders.charges.unmatched", About: "Charges at the provider that match no payment and are not refunded.", Label: "kind",
			Read: counts(pool, openUnmatched, "second_charge", "unknown_charge"),
		},
		telemetry.Gauge{
			Name: "orders.refunds.open", About: "Pending refunds.", Label: "status",
			Read: counts(pool, countRefunds, "pending"),
		},
		telemetry.Gauge{
			Name: "orders.idempotency.keys.expired", About: "Expired keys that the purge has not deleted yet (counted up to 100000).",
			Read: func(ctx context.Context) (_ map[string]float64, err error) {
				backlog, err = store.ExpiredKeys(ctx)
				return map[string]float64{"": float64(backlog.Expired)}, err
			},
		},
		telemetry.Gauge{
			Name: "orders.idempotency.keys.oldest.expired.age", About: "Time since the oldest of the expired keys expired.", Unit: "s",
			Read: func(context.Context) (map[string]float64, error) {
				return map[string]float64{"": backlog.Oldest.Seconds()}, nil
			},
		},
	)
}

// counts runs a query that returns names and counts. A name without a row is zero, not absent.
func counts(pool *pgxpool.Pool, query string, names ...string) func(context.Context) (map[string]float64, error) {
	return func(ctx context.Context) (map[string]float64, error) {
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
