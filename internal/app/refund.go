package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// RefundOrderInput is one refund that staff grants. Its JSON is part of the canonical input of the fingerprint.
type RefundOrderInput struct {
	OrderID  domain.OrderID `json:"-"` // part of the route
	Amount   int64          `json:"amount"`
	Currency string         `json:"currency"`
	Reason   string         `json:"reason,omitzero"`
}

// RefundReceipt is what refund-order answers.
type RefundReceipt struct {
	OrderID domain.OrderID
	Refund  domain.Refund
}

func (in RefundOrderInput) validate() error {
	var v domain.Violations
	if in.Amount < 1 {
		v.Add("amount/amount", "range", "must be at least 1")
	}
	if !domain.ValidCurrency(in.Currency) {
		v.Add("amount/currency", "pattern", "is not an ISO 4217 code")
	}
	domain.CheckReason(&v, in.Reason)
	return v.Err()
}

// RefundOrder adds a pending refund to the payment and leaves a refund-charge job in the outbox. It takes no version:
// refunds commute as long as their sum stays within the charge, so concurrent ones queue on the payment's row.
func (s *Service) RefundOrder(ctx context.Context, a Actor, k Keyed[RefundReceipt], in RefundOrderInput) (Outcome, error) {
	return runKeyed(ctx, s, Command[RefundReceipt]{
		UseCase:  UseCaseRefundOrder,
		Actor:    a,
		Target:   TheOrder(in.OrderID),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (RefundReceipt, error) {
			payment, err := tx.Payments().ForUpdate(ctx, a.Tenant, in.OrderID)
			if err != nil {
				return RefundReceipt{}, err
			}
			amount := domain.Money{Amount: in.Amount, Currency: in.Currency}
			r, err := s.requestRefund(ctx, tx, payment, amount, in.Reason)
			if err != nil {
				return RefundReceipt{}, err
			}
			return RefundReceipt{in.OrderID, r}, tx.Payments().Save(ctx, payment)
		},
		Keyed: k,
		Input: in,
	})
}

// requestRefund adds a pending refund and its job; the caller saves the payment.
func (s *Service) requestRefund(
	ctx context.Context, tx Tx, p *domain.Payment, amount domain.Money, reason string,
) (domain.Refund, error) {
	r := domain.Refund{ID: s.newID(), Amount: amount, Status: domain.RefundPending, Reason: reason, CreatedAt: s.now()}
	if err := p.RequestRefund(r); err != nil {
		return domain.Refund{}, err
	}
	return r, tx.Outbox().RefundCharge(ctx, OrderRef{p.State().Tenant, p.State().OrderID}, r.ID)
}

// refundBalance gives back what is left of a charge; the caller saves the payment.
func (s *Service) refundBalance(ctx context.Context, tx Tx, p *domain.Payment, reason string) error {
	balance := p.State().Balance()
	if balance.Amount == 0 {
		return nil
	}
	_, err := s.requestRefund(ctx, tx, p, balance, reason)
	return err
}

// RefundCharge is the job behind a refund. Like ChargeOrder it asks the provider between two transactions. It never
// gives up: beyond the horizon every attempt looks the refund up before it asks.
func (s *Service) RefundCharge(ctx context.Context, ref OrderRef, id uuid.UUID, done Completion) error {
	payment, refund, err := s.beginRefund(ctx, ref, id, done)
	if err != nil {
		return fmt.Errorf("begin refund: %w", err)
	}
	if refund == nil {
		return nil
	}
	answer, err := s.askForRefund(ctx, payment, *refund)
	if err != nil {
		return fmt.Errorf("refund: %w", err)
	}
	return s.settleRefund(ctx, ref, id, answer, done)
}

func (s *Service) beginRefund(
	ctx context.Context, ref OrderRef, id uuid.UUID, done Completion,
) (p domain.PaymentState, begun *domain.Refund, err error) {
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		begun = nil
		payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
		if err != nil {
			return err
		}
		refund, ok := payment.Refund(id)
		if !ok {
			return fmt.Errorf("refund %s: %w", id, ErrNotFound)
		}
		if refund.Status != domain.RefundPending {
			return done(ctx, tx)
		}
		if payment.AttemptRefund(id, s.now()) {
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
			refund, _ = payment.Refund(id)
		}
		p, begun = payment.State(), &refund
		return nil
	})
	return p, begun, err
}

func (s *Service) askForRefund(ctx context.Context, p domain.PaymentState, r domain.Refund) (RefundAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	request := RefundRequest{
		Ref: OrderRef{p.Tenant, p.OrderID}, RefundID: r.ID, ChargeID: p.ChargeID, Amount: r.Amount,
	}
	if s.pastHorizon(r.AttemptedAt) {
		found, ok, err := s.gateway.FindRefund(ctx, request)
		if err != nil || ok {
			return found, err
		}
	}
	return s.gateway.Refund(ctx, request)
}

func (s *Service) settleRefund(ctx context.Context, ref OrderRef, id uuid.UUID, a RefundAnswer, done Completion) error {
	outcome := domain.RefundFailed
	if a.Succeeded {
		outcome = domain.RefundSucceeded
	}
	return s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
		if err != nil {
			return err
		}
		if r, ok := payment.Refund(id); ok && r.Status == domain.RefundPending {
			if err := payment.SettleRefund(id, outcome, s.now()); err != nil {
				return err
			}
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
		}
		return done(ctx, tx)
	})
}
