// Package outbox is the insert side of the transactional outbox on River: jobs are inserted in the transaction of the
// change. Package jobs runs them after the commit.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/propagation"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/postgres"
)

// SchemaVersion is the version of the jobs' arguments. A worker refuses a newer version than it knows, so that an old
// worker fails visibly and the job waits for a new worker.
//
// Version 2 is the protocol that creates an intent before it confirms it; a worker of the previous release must not
// begin such a charge.
const SchemaVersion = 2

// MaxAttempts is so high that it is never reached: a job ends only when its outcome is known or its use case gives up,
// never because River discards it.
const MaxAttempts = 10_000

// Target identifies the order of a job, with the version of the job's arguments. It contains no amounts and no personal
// data.
type Target struct {
	Schema  int       `json:"schema"`
	Tenant  string    `json:"tenant_id"`
	OrderID uuid.UUID `json:"order_id"`
}

// Ref names the order.
func (t Target) Ref() app.OrderRef { return app.OrderRef{Tenant: t.Tenant, OrderID: t.OrderID} }

// Check refuses arguments of a newer version than SchemaVersion.
func (t Target) Check() error {
	if t.Schema > SchemaVersion {
		return fmt.Errorf("job arguments have schema %d; this worker knows %d", t.Schema, SchemaVersion)
	}
	return nil
}

func target(ref app.OrderRef) Target { return Target{SchemaVersion, ref.Tenant, ref.OrderID} }

// ChargeOrderArgs names an order.
type ChargeOrderArgs struct{ Target }

// Kind implements river.JobArgs.
func (ChargeOrderArgs) Kind() string { return "charge-order" }

// RefundChargeArgs names a refund.
type RefundChargeArgs struct {
	Target
	RefundID uuid.UUID `json:"refund_id"`
}

// Kind implements river.JobArgs.
func (RefundChargeArgs) Kind() string { return "refund-charge" }

// SettlePaymentArgs names a payment to settle, and optionally another intent to retrieve.
type SettlePaymentArgs struct {
	Target
	IntentID string `json:"intent_id,omitempty"`
}

// Kind implements river.JobArgs.
func (SettlePaymentArgs) Kind() string { return "settle-payment" }

// In binds the outbox to a transaction. A job is a write like any other: it is sent with the rest of the transaction.
func In(s *postgres.Session) app.Outbox { return transaction{s} }

type transaction struct{ s *postgres.Session }

// ChargeOrder implements app.Outbox.
func (t transaction) ChargeOrder(ctx context.Context, ref app.OrderRef) error {
	return t.insert(ctx, ChargeOrderArgs{target(ref)})
}

// RefundCharge implements app.Outbox.
func (t transaction) RefundCharge(ctx context.Context, ref app.OrderRef, refund uuid.UUID) error {
	return t.insert(ctx, RefundChargeArgs{target(ref), refund})
}

// SettlePayment implements app.Outbox.
func (t transaction) SettlePayment(ctx context.Context, ref app.OrderRef, intentID string) error {
	return t.insert(ctx, SettlePaymentArgs{target(ref), intentID})
}

// SettlePaymentOnce implements app.Outbox. A running job does not count, because it may have read the state already.
func (t transaction) SettlePaymentOnce(ctx context.Context, ref app.OrderRef, intentID string) error {
	args := SettlePaymentArgs{target(ref), intentID}
	var waits bool
	err := t.s.Immediate().QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM river_job WHERE kind = $1 AND args @> $2 AND args = $2
			AND state IN ('available', 'pending', 'retryable', 'scheduled'))`, args.Kind(), args).Scan(&waits)
	if err != nil {
		return fmt.Errorf("look for a waiting %s: %w", args.Kind(), err)
	}
	if waits {
		return nil
	}
	return t.insert(ctx, args)
}

func (t transaction) insert(ctx context.Context, args river.JobArgs) error {
	values, err := InsertArgs(ctx, args)
	if err != nil {
		return err
	}
	t.s.Write("enqueue "+args.Kind(), InsertSQL, values...)
	return nil
}

// InsertSQL inserts a job as River's own clients for other languages do. All timestamps come from the database's clock,
// so a process with a wrong clock delays nothing; the other columns have the table's defaults. It takes the values of
// InsertArgs, and may be one statement of a pgx.Batch.
const InsertSQL = `INSERT INTO river_job (kind, args, metadata, max_attempts, created_at, scheduled_at)
VALUES ($1, $2, $3, $4, now(), now())`

// InsertArgs gives the arguments of InsertSQL. The metadata carries the trace of ctx, as otelriver would write it.
func InsertArgs(ctx context.Context, args river.JobArgs) ([]any, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", args.Kind(), err)
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	metadata, err := json.Marshal(carrier)
	if err != nil {
		return nil, fmt.Errorf("encode trace context: %w", err)
	}
	return []any{args.Kind(), string(encoded), string(metadata), MaxAttempts}, nil
}
