// Command api serves the HTTP API. Its settings are environment variables; docs/settings describes them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
)

func main() { process.Serve("orders-api", process.Ready(), run) }

// run starts the parts in the order in which they need each other, serves until ctx ends, and stops them.
func run(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	c, err := config.LoadAPI(lookup)
	if err != nil {
		return err
	}
	t, err := telemetry.Start(ctx, "orders-api")
	if err != nil {
		return err
	}
	api, err := boot.StartAPI(ctx, c, t, log)
	if err != nil {
		return err
	}
	ops, err := boot.StartOps(c.OpsAddr, t, log, api.Ready)
	if err != nil {
		return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, api.Stop))
	}
	if err := process.Started(lookup, process.Addresses{URL: api.URL(), Ops: ops.URL()}); err != nil {
		return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, api.Stop, ops.Stop))
	}
	log.InfoContext(ctx, "api started", "url", api.URL(), "ops", ops.URL())
	select {
	case <-ctx.Done():
	case err = <-api.Failed():
		err = fmt.Errorf("api: %w", err)
	}
	ops.Stopping()
	return errors.Join(err, boot.StopAll(ctx, c.ShutdownTimeout, api.Stop, ops.Stop, t.Stop))
}
