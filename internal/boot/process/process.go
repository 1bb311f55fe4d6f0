// Package process is what all commands have in common: signals, one line of output for a failure, and the healthcheck
// argument for containers.
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

// Main runs a process until it returns or receives a signal. The first signal starts a graceful stop, a second one
// kills the process. A failure is one line on standard error and exit status 1.
func Main(service string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // restores the default action for a second signal
	log := telemetry.NewLog(os.Stderr, service)
	// Without a handler OpenTelemetry prints its errors, and an unreachable collector is an error for every batch of
	// spans.
	quiet := telemetry.Quiet(log, slog.LevelWarn, time.Minute)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { quiet.Warn("telemetry", "error", err) }))
	if err := run(ctx, os.LookupEnv, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// gcPercent lets the heap grow to four times the live heap before a collection. The live heap is only some MiB, so Go's
// default would collect many times a second, which costs about a tenth of the CPU.
const gcPercent = 300

// Serve is Main for a process that listens. With the argument healthcheck it requests the health endpoint of the
// running process with the same environment, because the image has neither a shell nor curl.
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
