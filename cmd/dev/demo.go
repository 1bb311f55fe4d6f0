package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/orders/internal/dev/child"
	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
)

// demoLimit ends the tour whatever happens; it takes well under a minute.
const demoLimit = 3 * time.Minute

// runDemo tells and checks the tour on a service of its own: no address, no database and no setting of the user's is
// touched or looked at. It fails if any promise is broken.
func runDemo(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	s, parts := newStory(os.Stdout), &child.Output{}
	s.printf("Starting PostgreSQL, the payment provider's stand-in, the API and the worker, all of them throw-away …\n")
	forgetEnvironment()
	service, stop, err := stack.Throwaway(ctx, stack.ThrowawayOptions{Log: parts, Notes: os.Stderr})
	defer func() {
		err = errors.Join(err, stop())
		if lines := parts.Tail(); err != nil && lines != "" && !errors.Is(ctx.Err(), context.Canceled) {
			fmt.Fprintf(os.Stderr, "\nThe last lines that the parts of the service logged:\n%s\n", lines)
		}
	}()
	if err != nil {
		return err
	}
	begun := time.Now()
	told := scenario.Tour(ctx, service, s, s.headline)
	if ctx.Err() != nil {
		return fmt.Errorf("the demo was stopped: %w", context.Cause(ctx))
	}
	return s.summary(told, time.Since(begun))
}

// forgetEnvironment drops the variables that libraries read by themselves: those of libpq (PGSERVICE and the like), which
// pgx mixes into every address, and those of OpenTelemetry. PG_BINDIR, which says where a PostgreSQL is installed, stays.
func forgetEnvironment() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if libpq := strings.HasPrefix(name, "PG") && name != "PG_BINDIR"; libpq || strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name)
		}
	}
}
