// Package outbox is the application's outbox on River: jobs go in with the transaction of the change that asks for
// them, and workers take them out after its commit.
package outbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"example.com/orders/internal/app"
)

// schemaVersion is the version of the jobs' arguments. A worker refuses a newer one than it knows, so that an old
// worker beside a new API fails visibly and the job waits for a new worker.
//
// Version 2 is the protocol that creates an intent before it confirms it; a worker of the release before this one must not
// begin such a charge.
const schemaVersion = 2

// maxAttempts is out of reach on purpose: a job ends because its outcome is known or because the use case gave up
// visibly, never because River counted to a number and discarded it.
const maxAttempts = 10_000

// chargeOrderArgs names an order. It carries no amount to trust and no personal data.
type chargeOrderArgs struct {
	Schema  int       `json:"schema"`
	Tenant  string    `json:"tenant_id"`
	OrderID uuid.UUID `json:"order_id"`
}

// Kind implements river.JobArgs.
func (chargeOrderArgs) Kind() string { return "charge-order" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (chargeOrderArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts}
}

// refundChargeArgs names a refund.
type refundChargeArgs struct {
	Schema   int       `json:"schema"`
	Tenant   string    `json:"tenant_id"`
	OrderID  uuid.UUID `json:"order_id"`
	RefundID uuid.UUID `json:"refund_id"`
}

// Kind implements river.JobArgs.
func (refundChargeArgs) Kind() string { return "refund-charge" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (refundChargeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts}
}

// settlePaymentArgs names a payment to look at, and perhaps an intent beside its own.
type settlePaymentArgs struct {
	Schema   int       `json:"schema"`
	Tenant   string    `json:"tenant_id"`
	OrderID  uuid.UUID `json:"order_id"`
	IntentID string    `json:"intent_id,omitempty"`
}

// Kind implements river.JobArgs.
func (settlePaymentArgs) Kind() string { return "settle-payment" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (settlePaymentArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts}
}

// Enqueuer inserts jobs. It neither fetches nor works any, so the API can hold one.
type Enqueuer struct{ client *river.Client[pgx.Tx] }

// NewEnqueuer makes an insert-only client.
func NewEnqueuer(log *slog.Logger, plugins ...rivertype.Plugin) (*Enqueuer, error) {
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Logger: log, Plugins: plugins})
	if err != nil {
		return nil, fmt.Errorf("river insert client: %w", err)
	}
	return &Enqueuer{client}, nil
}

// In binds the outbox to a transaction.
func (e *Enqueuer) In(tx pgx.Tx) app.Outbox { return transaction{tx, e.client} }

type transaction struct {
	tx     pgx.Tx
	client *river.Client[pgx.Tx]
}

// ChargeOrder implements app.Outbox.
func (t transaction) ChargeOrder(ctx context.Context, ref app.OrderRef) error {
	return t.insert(ctx, chargeOrderArgs{schemaVersion, ref.Tenant, ref.OrderID})
}

// RefundCharge implements app.Outbox.
func (t transaction) RefundCharge(ctx context.Context, ref app.OrderRef, refund uuid.UUID) error {
	return t.insert(ctx, refundChargeArgs{schemaVersion, ref.Tenant, ref.OrderID, refund})
}

// SettlePayment implements app.Outbox.
func (t transaction) SettlePayment(ctx context.Context, ref app.OrderRef, intentID string) error {
	return t.insert(ctx, settlePaymentArgs{schemaVersion, ref.Tenant, ref.OrderID, intentID})
}

func (t transaction) insert(ctx context.Context, args river.JobArgs) error {
	if _, err := t.client.InsertTx(ctx, t.tx, args, nil); err != nil {
		return fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return nil
}
