package boot

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/stripegateway"
)

// Worker is a running worker process.
type Worker struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
}

// StartWorker starts the worker and returns once it fetches jobs.
func StartWorker(ctx context.Context, c config.Worker, log *slog.Logger) (*Worker, error) {
	pool, err := postgres.Open(ctx, c.Database, "orders-worker")
	if err != nil {
		return nil, err
	}
	w := &Worker{pool: pool}
	if err := w.start(ctx, c, log); err != nil {
		pool.Close()
		return nil, err
	}
	return w, nil
}

func (w *Worker) start(ctx context.Context, c config.Worker, log *slog.Logger) error {
	enqueuer, err := outbox.NewEnqueuer(log)
	if err != nil {
		return err
	}
	gateway := stripegateway.New(stripegateway.Config{
		APIKey: c.StripeKey, BaseURL: c.StripeURL, Timeout: c.ProviderTimeout,
	})
	store := postgres.NewStore(w.pool, enqueuer.In, storeSettings(c.Database, 0))
	service := app.New(store, postgres.NewReader(store), gateway, app.Settings{ChargeHorizon: c.ChargeHorizon}, time.Now)
	w.client, err = outbox.NewWorker(w.pool, service, postgres.PgxTx, outbox.WorkerConfig{
		MaxWorkers: c.Concurrency, JobTimeout: c.JobTimeout, RescueAfter: c.JobRescueAfter, StopTimeout: c.ShutdownTimeout,
	}, log)
	if err != nil {
		return err
	}
	// Jobs outlive the signal that asks for a stop: Stop gives them their time.
	if err := w.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start river: %w", err)
	}
	return nil
}

// Stop stops fetching, lets running jobs finish until ctx ends, and closes the pool last.
func (w *Worker) Stop(ctx context.Context) error {
	err := w.client.Stop(ctx)
	w.pool.Close()
	if err != nil {
		return fmt.Errorf("stop river: %w", err)
	}
	return nil
}
