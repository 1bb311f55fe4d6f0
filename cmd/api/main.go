// Command api serves the HTTP API. Its settings are environment variables; docs/settings describes them.
package main

import (
	"context"
	"log/slog"
	"os"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/infra/config"
)

func main() { boot.Main(run) }

func run(ctx context.Context, log *slog.Logger) error {
	c, err := config.LoadAPI(os.LookupEnv)
	if err != nil {
		return err
	}
	api, err := boot.StartAPI(ctx, c, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "api listens", "url", api.URL())
	select {
	case <-ctx.Done():
	case err := <-api.Failed():
		log.ErrorContext(ctx, "api failed", "error", err)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ShutdownTimeout)
	defer cancel()
	return api.Stop(stop)
}
