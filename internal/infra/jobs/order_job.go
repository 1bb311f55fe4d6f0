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
)

// addOrderJobs registers the jobs of the outbox: each calls the use case of its name.
func addOrderJobs(workers *river.Workers, service UseCases, txOf TxOf) {
	river.AddWorker(workers, &orderJob[outbox.ChargeOrderArgs]{txOf: txOf,
		call: func(ctx context.Context, a outbox.ChargeOrderArgs, done app.Completion) error {
			return service.ChargeOrder(ctx, a.Ref(), done)
		}})
	river.AddWorker(workers, &orderJob[outbox.RefundChargeArgs]{txOf: txOf,
		call: func(ctx context.Context, a outbox.RefundChargeArgs, done app.Completion) error {
			return service.RefundCharge(ctx, a.Ref(), a.RefundID, done)
		}})
	river.AddWorker(workers, &orderJob[outbox.SettlePaymentArgs]{txOf: txOf,
		call: func(ctx context.Context, a outbox.SettlePaymentArgs, done app.Completion) error {
			return service.SettlePayment(ctx, a.Ref(), a.IntentID, done)
		}})
}

// orderArgs are arguments that name an order.
type orderArgs interface {
	river.JobArgs
	Check() error
}

// orderJob runs a use case on the order that its arguments name.
type orderJob[T orderArgs] struct {
	river.WorkerDefaults[T]
	txOf TxOf
	call func(context.Context, T, app.Completion) error
}

// Work implements river.Worker.
func (w *orderJob[T]) Work(ctx context.Context, job *river.Job[T]) error {
	if err := job.Args.Check(); err != nil {
		return err
	}
	return toRiverError(w.call(ctx, job.Args, completion(job, w.txOf)))
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
