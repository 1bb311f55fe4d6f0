package app

import (
	"context"

	"example.com/orders/internal/domain"
)

// RefundOrderInput is one refund that staff requests. Its JSON is part of the canonical input of the fingerprint.
type RefundOrderInput struct {
	OrderID  domain.OrderID `json:"-"` // part of the route
	Amount   int64          `json:"amount"`
	Currency string         `json:"currency"`
	Reason   string         `json:"reason,omitzero"`
}

// RefundReceipt is the result of refund-order.
type RefundReceipt struct {
	OrderID domain.OrderID
	Refund  domain.Refund
}

func (in RefundOrderInput) validate() error {
	var v domain.Violations
	amount := domain.Money{Amount: in.Amount, Currency: in.Currency}
	if !domain.ValidCurrency(in.Currency) {
		v.Add("amount/currency", "pattern", "is not a currency that can be charged")
	} else if !amount.Payable() {
		v.Add("amount/amount", "range", "must be 1 to 99999999, and a multiple of 10 in a currency of three decimals")
	}
	domain.CheckReason(&v, in.Reason)
	return v.Err()
}

// RefundOrder adds a pending refund to the payment and enqueues a refund-charge job in the outbox. It takes no version:
// refunds commute as long as their sum stays within the charge, so concurrent requests wait for the payment's row lock.
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
	r := domain.Refund{ID: s.newID(), Amount: amount, Status: domain.RefundPending, Reason: reason, CreatedAt: tx.Now()}
	if err := p.RequestRefund(r); err != nil {
		return domain.Refund{}, err
	}
	return r, tx.Outbox().RefundCharge(ctx, OrderRef{p.State().Tenant, p.State().OrderID}, r.ID)
}

// refundBalance requests a refund of the remaining balance; the caller saves the payment.
func (s *Service) refundBalance(ctx context.Context, tx Tx, p *domain.Payment, reason string) error {
	balance := p.State().Balance()
	if balance.Amount == 0 {
		return nil
	}
	_, err := s.requestRefund(ctx, tx, p, balance, reason)
	return err
}
