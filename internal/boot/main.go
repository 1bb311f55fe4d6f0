package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
)

// RunAPI is the API process.
func RunAPI(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	c, err := config.LoadAPI(lookup)
	if err != nil {
		return err
	}
	t, err := telemetry.Start(ctx, "orders-api")
	if err != nil {
		return err
	}
	api, err := StartAPI(ctx, c, t, log)
	if err != nil {
		return err
	}
	ops, err := StartOps(c.OpsAddr, t, log, api.Ready)
	if err != nil {
		return errors.Join(err, stopAll(ctx, c.ShutdownTimeout, api.Stop))
	}
	log.InfoContext(ctx, "api listens", "url", api.URL(), "ops", ops.URL())
	select {
	case <-ctx.Done():
	case err = <-api.Failed():
		err = fmt.Errorf("api: %w", err)
	}
	ops.Stopping()
	return errors.Join(err, stopAll(ctx, c.ShutdownTimeout, api.Stop, ops.Stop, t.Stop))
}

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
		return errors.Join(err, stopAll(ctx, c.ShutdownTimeout, worker.Stop))
	}
	if err := ops.ShowJobs(ctx, worker); err != nil {
		return errors.Join(err, stopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop))
	}
	log.InfoContext(ctx, "worker works", "ops", ops.URL())
	<-ctx.Done()
	ops.Stopping()
	return stopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop, t.Stop)
}

// stopAll stops parts one after another, all within limit.
func stopAll(ctx context.Context, limit time.Duration, stops ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var err error
	for _, stop := range stops {
		err = errors.Join(err, stop(ctx))
	}
	return err
}
