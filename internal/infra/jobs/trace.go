package jobs

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/propagation"
)

// continueTrace makes a job's run part of the trace of the request that enqueued it, so that one trace shows an order
// from the request to the charge. InsertArgs writes the trace context into the job's metadata, and otelriver by itself
// would only link to it.
type continueTrace struct{ river.PluginDefaults }

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
