package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
)

// addOrderJobs registers the outbox jobs. Each calls the use case with the same name.
func addOrderJobs(workers *river.Workers, service UseCases) {
	river.AddWorker(workers, &orderJob[outbox.ChargeOrderArgs]{
		call: func(ctx context.Context, a outbox.ChargeOrderArgs, done app.Completion) error {
			return service.ChargeOrder(ctx, a.Ref(), done)
		},
	})
	river.AddWorker(workers, &orderJob[outbox.RefundChargeArgs]{
		call: func(ctx context.Context, a outbox.RefundChargeArgs, done app.Completion) error {
			return service.RefundCharge(ctx, a.Ref(), a.RefundID, done)
		},
	})
	river.AddWorker(workers, &orderJob[outbox.SettlePaymentArgs]{
		call: func(ctx context.Context, a outbox.SettlePaymentArgs, done app.Completion) error {
			return service.SettlePayment(ctx, a.Ref(), a.IntentID, done)
		},
	})
}

// orderArgs are arguments that name an order.
type orderArgs interface {
	river.JobArgs
	Check() error
}

// orderJob runs a use case on the order that its arguments name.
type orderJob[T orderArgs] struct {
	river.WorkerDefaults[T]
	call func(context.Context, T, app.Completion) error
}

// Work implements river.Worker.
func (w *orderJob[T]) Work(ctx context.Context, job *river.Job[T]) error {
	if err := job.Args.Check(); err != nil {
		return err
	}
	return toRiverError(w.call(ctx, job.Args, completion(job.JobRow)))
}

// toRiverError maps a use case's error to River's. A missing order or an open circuit breaker snoozes the job, so that
// the run does not count as an attempt and does not lengthen the backoff. Any other error is retried.
func toRiverError(err error) error {
	switch {
	case errors.Is(err, app.ErrNotFound):
		return river.JobSnooze(snooze)
	case errors.Is(err, app.ErrProviderPaused):
		return fmt.Errorf("%w: %w", err, river.JobSnooze(pausedFirst+rand.N(pausedMost-pausedFirst))) //nolint:gosec // G404: jitter, no secret
	default:
		return err
	}
}

// completeSQL completes a job as River does, unless another run has taken the job over.
const completeSQL = `UPDATE river_job SET state = 'completed', finalized_at = now()
WHERE id = $1 AND state = 'running' AND attempt = $2 AND attempted_at = $3`

// completion completes the job in the transaction that records its result, so both commit or neither. If the run no
// longer owns the job (it was rescued or cancelled), completion fails and the transaction rolls back.
func completion(job *rivertype.JobRow) app.Completion {
	return func(_ context.Context, tx app.Tx) error {
		postgres.SessionOf(tx).WriteOne(fmt.Sprintf("complete job %d", job.ID), errLost, completeSQL,
			job.ID, job.Attempt, job.AttemptedAt)
		return nil
	}
}

var errLost = errors.New("this run has lost its job")
