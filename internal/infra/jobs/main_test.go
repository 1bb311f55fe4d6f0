package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const patience = 30 * time.Second

// open opens a database whose clock is behind this process's by that much, or ahead of it where it is negative. Its
// sessions find functions of the test before PostgreSQL's own when a statement asks for the time.
func open(t *testing.T, behind time.Duration) *pgxpool.Pool {
	t.Helper()
	address, err := url.Parse(pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB)))
	require.NoError(t, err)
	if behind != 0 {
		query := address.Query()
		query.Set("search_path", "clock,pg_catalog,public")
		address.RawQuery = query.Encode()
	}
	pool := pgtest.Pool(t, address.String())
	if behind != 0 {
		_, err = pool.Exec(t.Context(), fmt.Sprintf(`
			CREATE SCHEMA clock;
			CREATE FUNCTION clock.now() RETURNS timestamptz STABLE
				RETURN pg_catalog.now() - interval '%[1]d seconds';
			CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz VOLATILE
				RETURN pg_catalog.clock_timestamp() - interval '%[1]d seconds'`, int(behind.Seconds())))
		require.NoError(t, err)
	}
	return pool
}

// value reads one value.
func value[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// insert leaves a charge-order job as the service does, and returns its id.
func insert(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	values, err := outbox.InsertArgs(t.Context(), outbox.ChargeOrderArgs{
		Target: outbox.Target{Schema: outbox.SchemaVersion, Tenant: "default", OrderID: uuid.New()},
	})
	require.NoError(t, err)
	execute(t, pool, outbox.InsertSQL, values...)
	return value[int64](t, pool, `SELECT max(id) FROM river_job`)
}

// service hands every run of a charge to the test.
type service struct {
	UseCases
	runs chan chargeRun
}

// chargeRun is one run of a charge-order job, which ends with what the test sends it.
type chargeRun struct {
	ctx  context.Context
	done app.Completion
	end  chan error
}

func (s service) ChargeOrder(ctx context.Context, _ app.OrderRef, done app.Completion) error {
	r := chargeRun{ctx, done, make(chan error)}
	s.runs <- r
	return <-r.end
}

// noKeys is a store without keys, for the periodic jobs.
type noKeys struct{}

func (noKeys) PurgeEvents(context.Context, time.Time, int) (int, time.Time, error) {
	return 0, time.Time{}, nil
}

func (noKeys) PurgeKeys(context.Context, time.Time, int) (int, time.Time, error) {
	return 0, time.Time{}, nil
}

func (noKeys) ExpiredKeys(context.Context) (postgres.KeyBacklog, error) {
	return postgres.KeyBacklog{}, nil
}

func (service) SettlePayment(context.Context, app.OrderRef, string, app.Completion) error { return nil }

func (service) ReconcilePayments(context.Context, app.ReconcileLimits, app.Completion) (app.Reconciled, error) {
	return app.Reconciled{}, nil
}

// lateResults is an observer that passes on how many late results it was told of.
type lateResults struct{ told chan int }

func (lateResults) Job(context.Context, string, string, time.Duration, time.Duration) {}
func (l lateResults) LateResults(_ context.Context, jobs int)                         { l.told <- jobs }
func (lateResults) Purged(context.Context, int64, bool)                               {}
func (lateResults) Reconciled(context.Context, int)                                   {}

// noWaits is an observer of a store that has nothing to wait for.
type noWaits struct{}

func (noWaits) KeyWait(context.Context, string, time.Duration) {}
func (noWaits) TransactionRetry(context.Context, string)       {}

// inTx runs fn in a transaction of the application.
func inTx(t *testing.T, pool *pgxpool.Pool, fn func(context.Context, app.Tx) error) error {
	t.Helper()
	settings := postgres.Settings{LockTimeout: patience, AcquireTimeout: patience}
	return postgres.NewStore(pool, outbox.In, settings, noWaits{}, noop.NewTracerProvider()).InTx(t.Context(), fn)
}

// startWorker starts a worker with so many places, and stops it when the test ends.
func startWorker(t *testing.T, pool *pgxpool.Pool, places int) (runs <-chan chargeRun, late <-chan int) {
	t.Helper()
	return startWorkerPolling(t, pool, places, 10*time.Millisecond)
}

func startWorkerPolling(
	t *testing.T, pool *pgxpool.Pool, places int, every time.Duration,
) (runs <-chan chargeRun, late <-chan int) {
	t.Helper()
	s, l := service{runs: make(chan chargeRun, 10)}, lateResults{make(chan int, 10)}
	client, err := NewWorker(pool, s, noKeys{}, WorkerConfig{
		MaxWorkers: places, FetchCooldown: 10 * time.Millisecond, PollInterval: every,
		JobTimeout: time.Minute, RescueAfter: time.Hour, StopTimeout: time.Second,
		Purge: PurgeConfig{Interval: time.Hour, Batch: 1, Batches: 1}, Reconcile: ReconcileConfig{Interval: time.Hour},
	}, l, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, client.Stop(ctx))
	})
	return s.runs, l.told
}

// next takes what comes next, within bounds.
func next[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		require.FailNow(t, "never came: "+what)
	}
	return v
}

// awaitJob waits until a job is as described.
func awaitJob(t *testing.T, pool *pgxpool.Pool, id int64, condition string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return value[bool](t, pool, `SELECT EXISTS (SELECT FROM river_job WHERE id = $1 AND (`+condition+`))`, id)
	}, patience, 5*time.Millisecond, condition)
}

var _ river.ClientRetryPolicy = backoff{}
