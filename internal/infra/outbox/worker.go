package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/orders/internal/app"
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

// TxOf gives the transaction beneath the application's, in which a job is completed.
type TxOf func(app.Tx) pgx.Tx

// NewWorker makes the River client that works the jobs.
func NewWorker(
	pool *pgxpool.Pool, service UseCases, keys KeyStore, txOf TxOf, c WorkerConfig, o Observer, log *slog.Logger,
	plugins ...rivertype.Plugin,
) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &chargeOrder{service: service, txOf: txOf})
	river.AddWorker(workers, &refundCharge{service: service, txOf: txOf})
	river.AddWorker(workers, &settlePayment{service: service, txOf: txOf})
	river.AddWorker(workers, &purgeKeys{store: keys, config: c.Purge, stopping: c.Stopping, observer: o, log: log})
	river.AddWorker(workers, &reconcilePayments{service: service, txOf: txOf, config: c.Reconcile, observer: o, log: log})
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
	return time.Now().Add(wait/2 + rand.N(wait/2+1))
}

type chargeOrder struct {
	river.WorkerDefaults[chargeOrderArgs]
	service UseCases
	txOf    TxOf
}

// Work implements river.Worker.
func (w *chargeOrder) Work(ctx context.Context, job *river.Job[chargeOrderArgs]) error {
	if err := checkSchema(job.Args.Schema); err != nil {
		return err
	}
	ref := app.OrderRef{Tenant: job.Args.Tenant, OrderID: job.Args.OrderID}
	return toRiverError(w.service.ChargeOrder(ctx, ref, completion(job, w.txOf)))
}

type refundCharge struct {
	river.WorkerDefaults[refundChargeArgs]
	service UseCases
	txOf    TxOf
}

// Work implements river.Worker.
func (w *refundCharge) Work(ctx context.Context, job *river.Job[refundChargeArgs]) error {
	if err := checkSchema(job.Args.Schema); err != nil {
		return err
	}
	ref := app.OrderRef{Tenant: job.Args.Tenant, OrderID: job.Args.OrderID}
	return toRiverError(w.service.RefundCharge(ctx, ref, job.Args.RefundID, completion(job, w.txOf)))
}

type settlePayment struct {
	river.WorkerDefaults[settlePaymentArgs]
	service UseCases
	txOf    TxOf
}

// Work implements river.Worker.
func (w *settlePayment) Work(ctx context.Context, job *river.Job[settlePaymentArgs]) error {
	if err := checkSchema(job.Args.Schema); err != nil {
		return err
	}
	ref := app.OrderRef{Tenant: job.Args.Tenant, OrderID: job.Args.OrderID}
	return toRiverError(w.service.SettlePayment(ctx, ref, job.Args.IntentID, completion(job, w.txOf)))
}

func checkSchema(schema int) error {
	if schema > schemaVersion {
		return fmt.Errorf("job arguments have schema %d; this worker knows %d", schema, schemaVersion)
	}
	return nil
}

// toRiverError turns a use case's error into River's: snooze where the order is not there, or where a failing provider was not
// asked, which is no attempt and must not lengthen the pause before the next; else try again.
func toRiverError(err error) error {
	switch {
	case errors.Is(err, app.ErrNotFound):
		return river.JobSnooze(snooze)
	case errors.Is(err, app.ErrProviderPaused):
		return fmt.Errorf("%w: %w", err, river.JobSnooze(pausedFirst+rand.N(pausedMost-pausedFirst)))
	default:
		return err
	}
}

// completion completes the job in the transaction that records its result: both, or neither. A run that has lost its job,
// because it counted as crashed or the job was cancelled, fails here, and its transaction with it.
func completion[T river.JobArgs](job *river.Job[T], txOf TxOf) app.Completion {
	return func(ctx context.Context, tx app.Tx) error {
		done, err := river.JobCompleteTx[*driver](ctx, txOf(tx), job)
		if err == nil && done.State != rivertype.JobStateCompleted {
			err = fmt.Errorf("it is %s", done.State)
		}
		if err != nil {
			return fmt.Errorf("complete job %d, which this run may have lost: %w", job.ID, err)
		}
		return nil
	}
}
