package boot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
)

// RunWorker is the worker process.
func RunWorker(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	c, err := config.LoadWorker(lookup)
	if err != nil {
		return err
	}
	t, err := telemetry.Start(ctx, "orders-worker")
	if err != nil {
		return err
	}
	worker, err := StartWorker(ctx, c, t, log)
	if err != nil {
		return err
	}
	ops, err := StartOps(c.OpsAddr, t, log, worker.Ready)
	if err != nil {
		return errors.Join(err, StopAll(ctx, c.ShutdownTimeout, worker.Stop))
	}
	if err := ops.ShowJobs(ctx, worker); err != nil {
		return errors.Join(err, StopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop))
	}
	log.InfoContext(ctx, "worker works", "ops", ops.URL())
	<-ctx.Done()
	ops.Stopping()
	return StopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop, t.Stop)
}

// StopAll stops parts one after another, all within limit.
func StopAll(ctx context.Context, limit time.Duration, stops ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var err error
	for _, stop := range stops {
		err = errors.Join(err, stop(ctx))
	}
	return err
}
