// Command dev runs the whole service in one process on an embedded PostgreSQL, for local work (make run), and tells
// its story (make demo). It is not for production: cmd/api and cmd/worker are.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/boot/process"
	devstack "example.com/orders/internal/dev/stack"
	"example.com/orders/internal/infra/config"
)

const usage = `usage: dev run|demo

  run   the whole service, until Ctrl-C
  demo  the tour: every promise of the service, shown and checked; ends by itself`

func main() { process.Main("orders-dev", run) }

func run(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	command := ""
	if len(os.Args) > 1 {
		command = strings.Join(os.Args[1:], " ")
	}
	switch command {
	case "run":
		return runService(ctx, log)
	case "demo":
		return runDemo(ctx)
	case "seed": // what docker compose does after its migrations
		return runSeed(ctx, log)
	case "lab-worker", "lab-worker spans":
		return (&devstack.Stack{Log: log}).RunWorker(ctx, command == "lab-worker spans")
	case "worker": // the demo's child process, which it kills
		return boot.RunWorker(untilOrphaned(ctx), lookup, log)
	default:
		return errors.New(usage)
	}
}
