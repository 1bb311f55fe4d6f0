package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
)

// watchEvery is how often PostgreSQL is asked who waits for a lock.
const watchEvery = 15 * time.Millisecond

// attrWait marks the span of a wait for a lock. attrApplication and attrBlockers say who waited, and for whom.
const (
	attrWait        = "wait"
	attrApplication = "application"
	attrBlockers    = "blocked by"
)

// lockWait is one session that waits for a lock, as PostgreSQL tells it.
type lockWait struct {
	PID                          int32
	Application, Query, Blockers string
	Since                        time.Time // when its statement began, or the statement before it in the same flight
}

// openWait is a wait that the latest sample showed.
type openWait struct {
	span trace.Span
	last time.Time
}

const selectLockWaits = `
SELECT pid, application_name, query, pg_blocking_pids(pid)::text, query_start
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name IN ('orders-api', 'orders-worker')
ORDER BY pid`

// watch samples the waits for locks, until stop: a wait is a span from the first sample that shows it to the last.
func (r *run) watch(ctx context.Context, service *scenario.Service) (stop func()) {
	r.mu.Lock()
	r.service = service
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans.Processor(r.report))).Tracer(labScope)
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		open := map[int32]*openWait{}
		for {
			if err := sample(ctx, tracer, service, open); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		r.readJobs(context.WithoutCancel(ctx))
	}
}

func sample(ctx context.Context, tracer trace.Tracer, service *scenario.Service, open map[int32]*openWait) error {
	rows, _ := service.DB.Query(ctx, selectLockWaits)
	waits, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lockWait])
	if err != nil {
		return fmt.Errorf("look at waits: %w", err)
	}
	now, seen := time.Now(), map[int32]bool{}
	for _, w := range waits {
		seen[w.PID] = true
		if open[w.PID] == nil {
			_, span := tracer.Start(ctx, "waits for a lock", trace.WithTimestamp(now), trace.WithAttributes(
				attribute.Bool(attrWait, true), attribute.String(attrApplication, w.Application),
				attribute.Int("pid", int(w.PID)), attribute.String(attrBlockers, "session "+strings.Trim(w.Blockers, "{}")),
				attribute.String(scenario.AttrRequest, w.Query)))
			open[w.PID] = &openWait{span: span}
		}
		open[w.PID].last = now
	}
	for pid, wait := range open {
		if !seen[pid] {
			wait.span.End(trace.WithTimestamp(wait.last))
			delete(open, pid)
		}
	}
	return nil
}
