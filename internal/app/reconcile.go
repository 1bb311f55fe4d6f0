package app

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Orphan is a payment or a refund without a known outcome for which no job is alive.
type Orphan struct {
	Ref    OrderRef
	Refund uuid.UUID // zero: the charge
}

// ReconcilePayments is the net beneath the outbox. It finds charges and refunds that have been without an outcome for
// longer than age and for which no job is alive (it was cancelled by hand, lost in a restore, or gave the charge up as
// unresolved), and enqueues their jobs again. The provider is never asked here: the jobs do that, by their own protocol,
// with the lookup first beyond the horizon. It looks at no more than limit and tells how many it enqueued.
func (s *Service) ReconcilePayments(ctx context.Context, age time.Duration, limit int, done Completion) (n int, err error) {
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		orphans, err := tx.Outbox().Orphans(ctx, s.now().Add(-age), limit)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			if err := enqueueAgain(ctx, tx.Outbox(), o); err != nil {
				return err
			}
		}
		n = len(orphans)
		return done(ctx, tx)
	})
	if err != nil {
		return 0, fmt.Errorf("reconcile payments: %w", err)
	}
	return n, nil
}

func enqueueAgain(ctx context.Context, outbox Outbox, o Orphan) error {
	if o.Refund != uuid.Nil {
		return outbox.RefundCharge(ctx, o.Ref, o.Refund)
	}
	return outbox.ChargeOrder(ctx, o.Ref)
}
