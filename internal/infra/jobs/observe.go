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

// Observer counts job runs, dropped late results, purged keys and payments that were enqueued again.
type Observer interface {
	Job(ctx context.Context, kind, outcome string, late, took time.Duration)
	LateResults(ctx context.Context, jobs int)
	Purged(ctx context.Context, keys int64, failed bool)
	Reconciled(ctx context.Context, payments int)
}

// observeJobs counts and logs every run: its outcome, its duration and its delay after the due time. A panic counts as
// failed. The outcome snoozed means that the job could not run yet and will run again without using up an attempt.
type observeJobs struct {
	river.MiddlewareDefaults
	observer Observer
	log      *slog.Logger
	paused   *slog.Logger // for runs that were paused by the circuit breaker; repeated lines are dropped
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
