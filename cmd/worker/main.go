// Command worker works the jobs of the outbox. Its settings are environment variables; docs/settings describes them.
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
	c, err := config.LoadWorker(os.LookupEnv)
	if err != nil {
		return err
	}
	worker, err := boot.StartWorker(ctx, c, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "worker works")
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ShutdownTimeout)
	defer cancel()
	return worker.Stop(stop)
}
