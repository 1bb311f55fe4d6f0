// Command worker runs the outbox jobs. Its settings are environment variables; docs/settings describes them.
package main

import (
	"context"
	"errors"
	"log/slog"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
)

func main() { process.Serve("orders-worker", process.Ready(), run) }

// run starts the parts in the order in which they need each other, works until ctx ends, and stops them.
func run(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	c, err := config.LoadWorker(lookup)
	if err != nil {
		return err
	}
	t, err := telemetry.Start(ctx, "orders-worker")
	if err != nil {
		return err
	}
	worker, err := boot.StartWorker(ctx, c, t, log)
	if err != nil {
		return err
	}
	ops, err := boot.StartOps(c.OpsAddr, t, log, worker.Ready)
	if err != nil {
		return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, worker.Stop))
	}
	if err := ops.ShowJobs(ctx, worker); err != nil {
		return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop))
	}
	if err := process.Started(lookup, process.Addresses{Ops: ops.URL()}); err != nil {
		return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop))
	}
	log.InfoContext(ctx, "worker started", "ops", ops.URL())
	<-ctx.Done()
	ops.Stopping()
	return boot.StopAll(ctx, c.ShutdownTimeout, worker.Stop, ops.Stop, t.Stop)
}
