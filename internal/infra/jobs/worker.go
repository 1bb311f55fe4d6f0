// Package jobs works the outbox on River after the commits that filled it, and the periodic jobs beside it.
package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/telemetry"
)

const (
	// snooze is the pause of a job that does not find its order: it was restored from a backup, or moved, and may yet
	// come. Snoozing spends no attempt.
	snooze = 30 * time.Second
	// A job that has not asked because the provider fails comes back after this, spread so that not all come at once.
	pausedFirst = 5 * time.Second
	pausedMost  = 20 * time.Second
	// Attempts at an unknown outcome come after 1 s, 2 s, 4 s, …, at most retryMost apart.
	retryFirst = time.Second
	retryMost  = 10 * time.Minute
	// maintenance is the queue of the periodic jobs: behind the charges of a long outage they would not get their turn.
	maintenance = "maintenance"
	maintainers = 2
	// quietFor is how long River's log does not repeat itself: without a database it would every second.
	quietFor = 10 * time.Second
)

// WorkerConfig bounds the work.
type WorkerConfig struct {
	MaxWorkers    int
	FetchCooldown time.Duration   // the least time between two fetches of jobs
	PollInterval  time.Duration   // the longest time between them
	JobTimeout    time.Duration   // of one run of a job
	RescueAfter   time.Duration   // after this a running job counts as crashed and is taken over
	StopTimeout   time.Duration   // how long a stop waits for running jobs
	Stopping      <-chan struct{} // closed when a stop begins: what can end early, does
	PollOnly      bool            // behind a pooler, where no connection can listen
	Purge         PurgeConfig
	Reconcile     ReconcileConfig
}

// UseCases is what the jobs call.
type UseCases interface {
	ChargeOrder(ctx context.Context, ref app.OrderRef, done app.Completion) error
	RefundCharge(ctx context.Context, ref app.OrderRef, refund uuid.UUID, done app.Completion) error
	SettlePayment(ctx context.Context, ref app.OrderRef, intentID string, done app.Completion) error
	ReconcilePayments(ctx context.Context, limits app.ReconcileLimits, done app.Completion) (app.Reconciled, error)
}

// NewWorker makes the River client that works the jobs.
func NewWorker(
	pool *pgxpool.Pool, service UseCases, keys KeyStore, c WorkerConfig, o Observer, log *slog.Logger,
	plugins ...rivertype.Plugin,
) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	addOrderJobs(workers, service)
	river.AddWorker(workers, &purgeKeys{store: keys, config: c.Purge, stopping: c.Stopping, observer: o, log: log})
	river.AddWorker(workers, &reconcilePayments{service: service, config: c.Reconcile, observer: o, log: log})
	client, err := river.NewClient(newDriver(pool, tellLate(o, log)), &river.Config{
		Logger:  telemetry.Quiet(log, slog.LevelWarn, quietFor),
		Workers: workers,
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: c.MaxWorkers, FetchCooldown: c.FetchCooldown, FetchPollInterval: c.PollInterval},
			maintenance:        {MaxWorkers: maintainers},
		},
		JobTimeout:           c.JobTimeout,
		RescueStuckJobsAfter: c.RescueAfter,
		SoftStopTimeout:      c.StopTimeout,
		RetryPolicy:          backoff{},
		PollOnly:             c.PollOnly,
		ReindexerIndexNames:  []string{}, // none: only the owner may, see docs/operations/roles.md
		Middleware: []rivertype.Middleware{&observeJobs{
			observer: o, log: log, paused: telemetry.Quiet(log, slog.LevelWarn, quietFor),
		}},
		// Plugins run around the middleware, the first one outermost: the trace is continued before any span begins.
		Plugins: append([]rivertype.Plugin{&identifyRun{}, &continueTrace{}}, plugins...),
		PeriodicJobs: []*river.PeriodicJob{
			every(c.Purge.Interval, purgeKeysArgs{}), every(c.Reconcile.Interval, reconcilePaymentsArgs{}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("river client: %w", err)
	}
	return client, nil
}

// tellLate makes what the driver calls with the jobs whose results came too late.
func tellLate(o Observer, log *slog.Logger) func(context.Context, []int64) {
	return func(ctx context.Context, ids []int64) {
		o.LateResults(ctx, len(ids))
		log.WarnContext(ctx, "late results of jobs dropped: other runs have taken the jobs over", "job_ids", ids)
	}
}

// backoff is exponential, with jitter over the upper half of each wait.
type backoff struct{}

// NextRetry implements river.ClientRetryPolicy.
func (backoff) NextRetry(job *rivertype.JobRow) time.Time {
	wait := retryMost
	if job.Attempt < 20 { // beyond, the shift would overflow
		wait = min(retryMost, retryFirst<<max(0, job.Attempt-1))
	}
	return time.Now().Add(postgres.Jitter(wait))
}
