package outbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/propagation"
)

// continueTrace makes the run of a job a part of the trace of the request that enqueued it, so that one trace tells
// the whole story of an order. otelriver writes the trace context into the job's metadata, and by itself would only
// link to it.
type continueTrace struct{ river.MiddlewareDefaults }

// Work implements rivertype.WorkerMiddleware.
func (*continueTrace) Work(ctx context.Context, job *rivertype.JobRow, next func(context.Context) error) error {
	var carried struct {
		Parent string `json:"traceparent"`
	}
	if json.Unmarshal(job.Metadata, &carried) == nil && carried.Parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": carried.Parent})
	}
	return next(ctx)
}

// Observer is told of every run of a job, of the keys purged and of the payments enqueued again.
type Observer interface {
	Job(ctx context.Context, kind, outcome string, late, took time.Duration)
	Purged(ctx context.Context, keys int64, failed bool)
	Reconciled(ctx context.Context, payments int)
}

// observeJobs tells the observer of every run: its outcome, its duration and how long after its due time it began.
type observeJobs struct {
	river.MiddlewareDefaults
	observer Observer
}

// Work implements rivertype.WorkerMiddleware.
func (m *observeJobs) Work(ctx context.Context, job *rivertype.JobRow, next func(context.Context) error) error {
	start := time.Now()
	err := next(ctx)
	outcome := "done"
	if err != nil {
		outcome = "again"
	}
	m.observer.Job(ctx, job.Kind, outcome, start.Sub(job.ScheduledAt), time.Since(start))
	return err
}
