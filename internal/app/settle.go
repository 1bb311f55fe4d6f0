package app

import (
	"context"

	"example.com/orders/internal/domain"
)

// settle applies the final state of an intent to the order and its payment. The caller holds both row locks. The
// charge's job, events and reconciliation all call it. It is idempotent.
//
//	intent                  | payment pending                 | succeeded                  | failed or canceled
//	succeeded               | charged; refunded where the     | another intent is returned | adopted, and refunded
//	                        | order is cancelled              |                            |
//	requires_payment_method | failed, an open order cancelled | -                          | -
//	canceled                | canceled; where the order is    | -                          | -
//	                        | open: failed, order cancelled   |                            |
func (s *Service) settle(
	ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment, intent Intent,
) ([]finding, error) {
	switch {
	case intent.Status == IntentSucceeded:
		return s.settleSucceeded(ctx, tx, o, p, intent)
	case p.Settled():
		return nil, nil
	case intent.Status == IntentCanceled && o.State().Status == domain.OrderCancelled:
		if err := p.Cancel(tx.Now()); err != nil {
			return nil, err
		}
		return nil, tx.Payments().Save(ctx, p)
	default:
		return []finding{{FindingChargeDeclined, intent.LastError}}, s.fail(ctx, tx, o, p)
	}
}

func (s *Service) settleSucceeded(
	ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment, intent Intent,
) (found []finding, err error) {
	before := p.State()
	if before.Status == domain.PaymentSucceeded {
		if before.IntentID == intent.ID {
			return nil, nil
		}
		return s.noteUnmatched(ctx, tx, UnmatchedCharge{
			Ref: OrderRef{before.Tenant, before.OrderID}, Intent: intent, Kind: FindingSecondCharge, KeyGeneration: 1,
		})
	}
	if p.Settled() {
		found = append(found, finding{FindingLateCharge, intent.ID})
	}
	if err := p.Succeed(intent.ID, tx.Now()); err != nil {
		return nil, err
	}
	if o.State().Status == domain.OrderCancelled {
		if err := s.refundBalance(ctx, tx, p, o.State().Cancellation.Reason); err != nil {
			return nil, err
		}
	}
	return found, tx.Payments().Save(ctx, p)
}

// fail marks the payment as failed. An order that is still open is cancelled and its stock returned.
func (s *Service) fail(ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment) error {
	if err := p.Fail(tx.Now()); err != nil {
		return err
	}
	if err := tx.Payments().Save(ctx, p); err != nil {
		return err
	}
	if o.State().Status == domain.OrderCancelled {
		return nil
	}
	err := o.Cancel(domain.Cancellation{Reason: domain.ReasonPaymentFailed, CancelledAt: tx.Now()})
	if err != nil {
		return err
	}
	if err := tx.Orders().Save(ctx, o); err != nil {
		return err
	}
	return returnStock(ctx, tx, o.State())
}
