package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/orders/internal/app"
)

// Observer is told of every run of a job, of results that came too late, of the keys purged and of the payments enqueued
// again.
type Observer interface {
	Job(ctx context.Context, kind, outcome string, late, took time.Duration)
	LateResults(ctx context.Context, jobs int)
	Purged(ctx context.Context, keys int64, failed bool)
	Reconciled(ctx context.Context, payments int)
}

// observeJobs tells the observer and the log of every run: its outcome, its duration and how long after its due time it
// began. A run that fails is for another attempt, and a panic is one that fails; snoozed is one that found too little.
type observeJobs struct {
	river.MiddlewareDefaults
	observer Observer
	log      *slog.Logger
	paused   *slog.Logger // for runs that did not ask a failing provider: one line stands for many
}

// Work implements rivertype.WorkerMiddleware.
func (m *observeJobs) Work(ctx context.Context, job *rivertype.JobRow, next func(context.Context) error) (err error) {
	start := time.Now()
	outcome := "panic"
	defer func() {
		took := time.Since(start)
		m.observer.Job(ctx, job.Kind, outcome, waited(job), took)
		line := []slog.Attr{
			slog.String("operation", job.Kind), slog.String("outcome", outcome), slog.Int64("job_id", job.ID),
			slog.Int("attempt", job.Attempt), slog.Duration("took", took),
		}
		if err != nil {
			line = append(line, slog.String("error", err.Error()))
		}
		log := m.log
		if errors.Is(err, app.ErrProviderPaused) {
			log = m.paused
		}
		log.LogAttrs(ctx, levelOf(outcome), "job", line...)
	}()
	err = next(ctx)
	outcome = outcomeOf(err)
	return err
}

// waited is how long after its due time a job was fetched. Both times are the database's.
func waited(job *rivertype.JobRow) time.Duration {
	if job.AttemptedAt == nil {
		return 0
	}
	return job.AttemptedAt.Sub(job.ScheduledAt)
}

func outcomeOf(err error) string {
	var snoozed *river.JobSnoozeError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &snoozed):
		return "snoozed"
	default:
		return "again"
	}
}

func levelOf(outcome string) slog.Level {
	if outcome == "done" {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
