package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/rivercontrib/otelriver"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/jobs"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/stripegateway"
	"example.com/orders/internal/infra/telemetry"
)

// Worker is a running worker process.
type Worker struct {
	client   *river.Client[pgx.Tx]
	pool     *pgxpool.Pool
	ready    *readiness
	stopping context.Context //nolint:containedctx // it ends when a stop begins, not with a call
	stop     context.CancelFunc
}

// StartWorker starts the worker and returns once it fetches jobs.
func StartWorker(ctx context.Context, c config.Worker, t *telemetry.Telemetry, log *slog.Logger) (*Worker, error) {
	pool, err := postgres.Open(ctx, c.Database, "orders-worker", t.Statements())
	if err != nil {
		return nil, err
	}
	ready, err := openReadiness(ctx, c.Database, "orders-worker", pool, true)
	if err != nil {
		pool.Close()
		return nil, err
	}
	w := &Worker{pool: pool, ready: ready}
	w.stopping, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := w.start(ctx, c, t, log); err != nil {
		ready.pool.Close()
		pool.Close()
		return nil, err
	}
	return w, nil
}

func (w *Worker) start(ctx context.Context, c config.Worker, t *telemetry.Telemetry, log *slog.Logger) error {
	// River cannot run without its tables or without writes, so unlike the API the worker does not start unready.
	if err := w.ready.awaitDatabase(ctx, c.Database.ConnectTimeout); err != nil {
		return fmt.Errorf("%s: %w", c.Database.Variable, err)
	}
	provider := stripegateway.Guard(telemetry.ObserveProvider(stripegateway.New(stripegateway.Config{
		APIKey: c.StripeKey, BaseURL: c.StripeURL, Timeout: c.ProviderTimeout,
		Transport: providerTransport(c.Concurrency, t),
	}), t.Metrics))
	store := postgres.NewStore(w.pool, outbox.In, postgres.NewSettings(c.Database, 0), t.Metrics, t.Traces)
	service := app.New(store, postgres.NewReader(store), provider, app.Settings{
		ProviderTimeout: c.ProviderTimeout, ProviderLag: c.ProviderLag, RefusalLimit: c.RefusalLimit,
	}, telemetry.Findings{Metrics: t.Metrics, Log: log})
	limits := workerConfig(c)
	limits.Stopping = w.stopping.Done()
	var err error
	w.client, err = jobs.NewWorker(w.pool, service, store, limits, t.Metrics, log, riverTelemetry(t))
	if err != nil {
		return err
	}
	err = errors.Join(postgres.PoolGauges(t.Metrics, w.pool, w.ready.pool), postgres.BacklogGauges(t.Metrics, w.pool, store))
	if err != nil {
		return err
	}
	return w.startRiver(ctx, c.Database.ConnectTimeout)
}

// providerTransport keeps one idle connection to the provider per concurrent job. Go's default keeps two, and would
// dial for most calls. Calls have spans if spans are exported.
func providerTransport(concurrency int, t *telemetry.Telemetry) http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented type
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = concurrency, concurrency
	if t.Statements() == nil {
		return transport
	}
	return otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(t.Traces),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(t.Propagator()))
}

// startRiver starts to fetch jobs. It retries, for at most limit, while the database has no free connection or accepts
// no writes.
func (w *Worker) startRiver(ctx context.Context, limit time.Duration) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := time.Now(); ; {
		// A stop signal must not cancel running jobs: Stop waits for them.
		err := w.client.Start(context.WithoutCancel(ctx))
		if err == nil {
			return nil
		}
		err = fmt.Errorf("start river: %w", err)
		if !postgres.Passing(err) || time.Since(began) >= limit {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func workerConfig(c config.Worker) jobs.WorkerConfig {
	return jobs.WorkerConfig{
		MaxWorkers: c.Concurrency, FetchCooldown: c.FetchCooldown, PollInterval: c.PollInterval, JobTimeout: c.JobTimeout, RescueAfter: c.JobRescueAfter,
		StopTimeout: c.ShutdownTimeout * 3 / 4, // the remaining quarter is for cancelled jobs to record their results

		PollOnly: c.Database.Pooled,
		Purge: jobs.PurgeConfig{
			Interval: c.PurgeInterval, Batch: c.PurgeBatch, Batches: c.PurgeBatches, Pause: c.PurgePause,
		},
		Reconcile: jobs.ReconcileConfig{Interval: c.ReconcileInterval, ReconcileLimits: app.ReconcileLimits{
			Age: c.ReconcileAge, Orphans: c.ReconcileBatch, Pages: c.ReconcilePages, Returns: c.ReconcileBatch,
			ReturnAfter: c.UnmatchedDelay,
		}},
	}
}

// riverTelemetry makes a span for every run of a job. Its metrics are off: they have a series per attempt, and ours
// have the same figures.
func riverTelemetry(t *telemetry.Telemetry) *otelriver.Middleware {
	return otelriver.NewMiddleware(&otelriver.MiddlewareConfig{
		EnableTracePropagation: true, EnableWorkSpanJobKindSuffix: true, MeterProvider: noop.NewMeterProvider(),
		TracerProvider: t.Traces,
	})
}

// Ready returns nil if the worker can run jobs, or the reason why it cannot.
func (w *Worker) Ready(ctx context.Context) error {
	select {
	case <-w.client.Stopped():
		return errors.New("river has stopped")
	default:
		return w.ready.database(ctx)
	}
}

// River returns the client, for River's user interface.
func (w *Worker) River() *river.Client[pgx.Tx] { return w.client }

// Stop stops fetching, lets running jobs finish, and closes the pool last, all until ctx ends.
func (w *Worker) Stop(ctx context.Context) error {
	w.stop()
	err := w.client.Stop(ctx)
	if err != nil {
		err = fmt.Errorf("stop river: %w", err)
	}
	return errors.Join(err, closePools(ctx, w.ready.pool, w.pool))
}
