package scenario

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/dev/testkit"
)

// Service is the running service that scenarios are shown on. It must be theirs alone: they switch faults on and kill the
// worker.
type Service struct {
	*testkit.Service

	Proxy     *testkit.Proxy // to the API, for losing answers
	Ops       string         // where /metrics of the API is
	EventsURL string         // where the provider delivers its events
	Worker    Worker
	Traces    trace.TracerProvider // of what the scenarios do themselves
}

// Worker is the worker as a process of its own.
type Worker interface {
	PID() int
	Kill() error                                // as a crash does (SIGKILL); returns once it is dead
	Start() error                               // starts a successor
	OpsURL(ctx context.Context) (string, error) // where its /metrics is, once it has started
}

// aliveJob is the states of a job that has not ended.
const aliveJob = `state IN ('available', 'pending', 'retryable', 'running', 'scheduled')`

// Rest waits until the provider has delivered its events and no job of an order is alive.
func (s *Service) Rest(ctx context.Context) error {
	if err := s.Sandbox.WaitEventsDelivered(ctx); err != nil {
		return fmt.Errorf("deliver events: %w", err)
	}
	for {
		var alive bool
		err := s.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM river_job WHERE args ? 'order_id' AND `+aliveJob+`)`).Scan(&alive)
		if err != nil {
			return fmt.Errorf("look for jobs: %w", err)
		}
		if !alive {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for jobs: %w", context.Cause(ctx))
		}
	}
}
