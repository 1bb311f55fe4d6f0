// Command dev runs the whole service on an embedded PostgreSQL for local work, with the lab (make run), and tells the tour
// (make demo). It is not for production: cmd/api and cmd/worker are.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/dev/stack"
	"example.com/orders/internal/infra/config"
)

const usage = `usage: dev run|demo

  run   the whole service and the lab, until Ctrl-C
  demo  the tour: every promise of the service, shown and checked; ends by itself`

func main() { process.Main("orders-dev", run) }

func run(ctx context.Context, _ config.Lookup, log *slog.Logger) error {
	switch command := strings.Join(os.Args[1:], " "); command {
	case "run":
		return runService(ctx, log)
	case "demo":
		return runDemo(ctx)
	case "seed": // what docker compose does after its migrations
		return runSeed(ctx, log)
	case "worker", "worker spans": // the child process of the tour and the lab, which they kill
		return (&stack.Stack{Log: log}).RunWorker(ctx, command == "worker spans")
	default:
		return errors.New(usage)
	}
}

// runSeed adds the catalogue to the database of DATABASE_URL.
func runSeed(ctx context.Context, log *slog.Logger) (err error) {
	s := &stack.Stack{Log: log}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.StartTelemetry(ctx); err != nil {
		return err
	}
	return s.Seed(ctx)
}
