// Package jobs runs the outbox jobs and the periodic jobs on River.
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
	// snooze is the pause of a job whose order does not exist: the order may still be restored from backup. Snoozing
	// does not use up an attempt.
	snooze = 30 * time.Second
	// A job that the circuit breaker paused runs again after a random time between these two.
	pausedFirst = 5 * time.Second
	pausedMost  = 20 * time.Second
	// Failed attempts are repeated after 1 s, 2 s, 4 s, …, at most retryMost apart (exponential backoff with jitter).
	retryFirst = time.Second
	retryMost  = 10 * time.Minute
	// maintenance is the queue of the periodic jobs. In the default queue they would wait behind the charges of a long
	// outage.
	maintenance = "maintenance"
	maintainers = 2
	// quietFor is how long a repeated line of River's log is dropped: without a database River logs the same error
	// every second.
	quietFor = 10 * time.Second
)

// WorkerConfig configures the worker's concurrency and timeouts.
type WorkerConfig struct {
	MaxWorkers    int
	FetchCooldown time.Duration   // the least time between two fetches of jobs
	PollInterval  time.Duration   // the longest time between them
	JobTimeout    time.Duration   // of one run of a job
	RescueAfter   time.Duration   // after this a running job counts as crashed and is taken over
	StopTimeout   time.Duration   // how long a stop waits for running jobs
	Stopping      <-chan struct{} // closed when a stop begins, so that purges end early
	PollOnly      bool            // behind a pooler, where no connection can listen
	Purge         PurgeConfig
	Reconcile     ReconcileConfig
}

// UseCases are the use cases that the jobs call.
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
		ReindexerIndexNames:  []string{}, // none: only the tables' owner may reindex, see docs/operations/roles.md
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

// tellLate returns the driver's callback for dropped late results.
func tellLate(o Observer, log *slog.Logger) func(context.Context, []int64) {
	return func(ctx context.Context, ids []int64) {
		o.LateResults(ctx, len(ids))
		log.WarnContext(ctx, "late results of jobs dropped: other runs have taken the jobs over", "job_ids", ids)
	}
}

// backoff is exponential backoff, with jitter over the upper half of each wait.
type backoff struct{}

// NextRetry implements river.ClientRetryPolicy.
func (backoff) NextRetry(job *rivertype.JobRow) time.Time {
	wait := retryMost
	if job.Attempt < 20 { // beyond, the shift would overflow
		wait = min(retryMost, retryFirst<<max(0, job.Attempt-1))
	}
	return time.Now().Add(postgres.Jitter(wait))
}
