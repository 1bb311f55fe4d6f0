package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/orders/internal/domain"
)

// ChargeOrder is the job behind a placed order. It asks the provider between two transactions and never inside one:
// the first notes the attempt, the second records the answer together with the job's completion.
//
// An error means that the job must run again: ErrNotFound before the order is visible, anything else while the
// outcome is unknown. Running it again at any point is safe.
func (s *Service) ChargeOrder(ctx context.Context, ref OrderRef, done Completion) error {
	payment, err := s.beginCharge(ctx, ref, done)
	if err != nil {
		return fmt.Errorf("begin charge: %w", err)
	}
	if payment == nil {
		return nil
	}
	record, err := s.askForCharge(ctx, *payment)
	if err != nil {
		return fmt.Errorf("charge: %w", err)
	}
	if err := s.settleCharge(ctx, ref, record, done); err != nil {
		return fmt.Errorf("record charge: %w", err)
	}
	return nil
}

// beginCharge notes the first attempt, so that a cancellation from now on knows that money may have moved. It returns
// nil when there is nothing to ask: the outcome is known, or the order was cancelled before anybody asked.
func (s *Service) beginCharge(ctx context.Context, ref OrderRef, done Completion) (begun *domain.PaymentState, err error) {
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		begun = nil
		order, payment, err := lockBoth(ctx, tx, ref)
		if err != nil {
			return err
		}
		state := payment.State()
		if payment.Settled() {
			return done(ctx, tx)
		}
		if order.State().Status == domain.OrderCancelled && state.AttemptedAt.IsZero() {
			if err := payment.Cancel(s.now()); err != nil {
				return err
			}
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
			return done(ctx, tx)
		}
		if state.AttemptedAt.IsZero() {
			// Not noted as asked for while nobody asks: a cancellation meanwhile must not lead to a charge.
			if err := s.gateway.ChargePaused(); err != nil {
				return err
			}
		}
		if payment.Attempt(s.now()) {
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
		}
		state = payment.State()
		begun = &state
		return nil
	})
	return begun, err
}

// recordCharge changes the payment, and what follows from it, in the transaction that completes the job.
type recordCharge func(ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment) error

// askForCharge asks the provider. Within the horizon it repeats the same call under the same key. Beyond it the
// provider may have forgotten the key, so a blind repetition could charge twice: it looks the charge up first, and
// when the outcome still cannot be learned it gives up visibly.
func (s *Service) askForCharge(ctx context.Context, p domain.PaymentState) (recordCharge, error) {
	ctx, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout) // so that there is time to record what it says
	defer cancel()
	ref := OrderRef{p.Tenant, p.OrderID}
	late := s.pastHorizon(p.AttemptedAt)
	if late {
		found, ok, err := s.gateway.FindCharge(ctx, ref)
		switch {
		case errors.Is(err, ErrProviderPaused):
			return nil, err
		case err != nil:
			return s.recordUnresolved, nil // the record says that nobody could tell
		case ok:
			return s.recordAnswer(found), nil
		}
	}
	answer, err := s.gateway.Charge(ctx, ChargeRequest{Ref: ref, Amount: p.Amount, PaymentMethod: p.PaymentMethod})
	switch {
	case err == nil:
		return s.recordAnswer(answer), nil
	case late && !errors.Is(err, ErrProviderPaused):
		return s.recordUnresolved, nil
	default:
		return nil, err
	}
}

func (s *Service) pastHorizon(first time.Time) bool {
	return s.now().Sub(first) > s.settings.ChargeHorizon
}

func (s *Service) settleCharge(ctx context.Context, ref OrderRef, record recordCharge, done Completion) error {
	return s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		order, payment, err := lockBoth(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !payment.Settled() {
			if err := record(ctx, tx, order, payment); err != nil {
				return err
			}
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
		}
		return done(ctx, tx)
	})
}

func (s *Service) recordAnswer(a ChargeAnswer) recordCharge {
	if a.Succeeded {
		return func(ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment) error {
			return s.recordSucceeded(ctx, tx, o, p, a.ChargeID)
		}
	}
	return s.recordDeclined
}

// recordSucceeded notes the charge. Where the order was cancelled in the meantime, the money goes back.
func (s *Service) recordSucceeded(ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment, chargeID string) error {
	if err := p.Succeed(chargeID, s.now()); err != nil {
		return err
	}
	if o.State().Status != domain.OrderCancelled {
		return nil
	}
	return s.refundBalance(ctx, tx, p, o.State().Cancellation.Reason)
}

// recordDeclined ends the payment and, with it, the order: cancelled, its stock back on the shelf.
func (s *Service) recordDeclined(ctx context.Context, tx Tx, o *domain.Order, p *domain.Payment) error {
	now := s.now()
	if err := p.Fail(now); err != nil {
		return err
	}
	if o.State().Status == domain.OrderCancelled {
		return nil
	}
	if err := o.Cancel(domain.Cancellation{Reason: domain.ReasonPaymentFailed, CancelledAt: now}); err != nil {
		return err
	}
	if err := tx.Orders().Save(ctx, o); err != nil {
		return err
	}
	return s.moveStock(ctx, tx, o.State(), (*domain.Stock).Return)
}

func (s *Service) recordUnresolved(_ context.Context, _ Tx, _ *domain.Order, p *domain.Payment) error {
	return p.GiveUp(s.now())
}

// lockBoth locks an order and its payment, in the order that every use case keeps.
func lockBoth(ctx context.Context, tx Tx, ref OrderRef) (*domain.Order, *domain.Payment, error) {
	order, err := tx.Orders().ForUpdate(ctx, ref.Tenant, ref.OrderID)
	if err != nil {
		return nil, nil, err
	}
	payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
	return order, payment, err
}
