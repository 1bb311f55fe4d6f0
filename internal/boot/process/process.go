// Package process is what all commands have in common: signals, one line for a failure, and the question of a
// container's health check.
package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"

	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
)

// Run is the body of a process: it returns when ctx ends and everything has stopped.
type Run func(ctx context.Context, lookup config.Lookup, log *slog.Logger) error

// Main runs a process until it ends or a signal asks for it: the first signal stops it in good order, a second one
// ends it at once. A failure is one line on standard error and exit status 1.
func Main(service string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // hands a second signal back to its default
	log := telemetry.NewLog(os.Stderr, service)
	// Else it prints. A collector that is away fails with every batch of spans.
	quiet := telemetry.Quiet(log, slog.LevelWarn, time.Minute)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { quiet.Warn("telemetry", "error", err) }))
	if err := run(ctx, os.LookupEnv, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// gcPercent lets the heap grow to four times what is alive before it is collected. Little is alive here, some MiB, so that
// Go's default collects many times a second, at about a tenth of the CPU.
const gcPercent = 300

// Serve is Main for a process that listens. Called with the argument healthcheck it asks the process that runs with
// the same environment how it is, instead of running: an image without a shell and curl has nothing else to ask with.
func Serve(service string, health Health, run Run) {
	switch {
	case len(os.Args) == 1:
	case len(os.Args) == 2 && os.Args[1] == "healthcheck":
		run = health.ask
	default:
		run = func(context.Context, config.Lookup, *slog.Logger) error {
			return fmt.Errorf("usage: %s [healthcheck]", os.Args[0])
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	Main(service, run)
}
