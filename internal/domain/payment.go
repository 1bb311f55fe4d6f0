package domain

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// PaymentStatus is the state of a payment; transitions.go lists which changes exist.
type PaymentStatus string

// The states of a payment.
const (
	PaymentPending    PaymentStatus = "pending"    // the charge has no known outcome yet
	PaymentSucceeded  PaymentStatus = "succeeded"  // charged
	PaymentFailed     PaymentStatus = "failed"     // declined for good
	PaymentUnresolved PaymentStatus = "unresolved" // given up asking; reconcile-payments or a person settles it
	PaymentCanceled   PaymentStatus = "canceled"   // never charged: the order was cancelled first
)

// RefundStatus is the state of one refund: pending until the provider has answered.
type RefundStatus string

// The states of a refund.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Payment is the money of one order: the charge and its refunds. It is made with the order and has its own version.
type Payment struct{ s PaymentState }

// PaymentState is a payment's fields, for storing and showing it.
type PaymentState struct {
	Tenant        string
	OrderID       OrderID
	Status        PaymentStatus
	Amount        Money
	PaymentMethod string    // the provider's token of the card, never the card
	ChargeID      string    // the provider's id of the charge, once known
	AttemptedAt   time.Time // when the provider was first asked; zero: never. The retry horizon counts from here
	Refunds       []Refund
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Version       int64
}

// Refund is money on its way back.
type Refund struct {
	ID          uuid.UUID
	Amount      Money
	Status      RefundStatus
	Reason      string
	AttemptedAt time.Time // when the provider was first asked; zero: never
	CreatedAt   time.Time
}

// NewPayment makes the pending payment of an order.
func NewPayment(o OrderState, method string) *Payment {
	return &Payment{PaymentState{
		Tenant: o.Tenant, OrderID: o.ID, Status: PaymentPending, Amount: o.Total, PaymentMethod: method,
		CreatedAt: o.CreatedAt, UpdatedAt: o.CreatedAt,
	}}
}

// RestorePayment rebuilds a payment from storage.
func RestorePayment(s PaymentState) *Payment { return &Payment{s} }

// State returns the payment's fields.
func (p *Payment) State() PaymentState { return p.s }

// Stored notes the version that the store gave the payment.
func (p *Payment) Stored(version int64) { p.s.Version = version }

// Attempt notes that the provider is about to be asked. Only the first attempt counts; it tells whether that was it.
func (p *Payment) Attempt(at time.Time) bool {
	if !p.s.AttemptedAt.IsZero() {
		return false
	}
	p.s.AttemptedAt, p.s.UpdatedAt = at, at
	return true
}

// Succeed notes that the provider has charged.
func (p *Payment) Succeed(chargeID string, at time.Time) error {
	if err := p.become(PaymentSucceeded, at); err != nil {
		return err
	}
	p.s.ChargeID = chargeID
	return nil
}

// Fail notes that the provider has declined for good.
func (p *Payment) Fail(at time.Time) error { return p.become(PaymentFailed, at) }

// GiveUp notes that the outcome is not known and that nobody asks any more by itself.
func (p *Payment) GiveUp(at time.Time) error { return p.become(PaymentUnresolved, at) }

// Cancel notes that nothing was charged and nothing will be.
func (p *Payment) Cancel(at time.Time) error { return p.become(PaymentCanceled, at) }

// Settled tells whether the outcome of the charge is known.
func (p *Payment) Settled() bool {
	return p.s.Status != PaymentPending && p.s.Status != PaymentUnresolved
}

func (p *Payment) become(next PaymentStatus, at time.Time) error {
	if !slices.Contains(paymentTransitions()[p.s.Status], next) {
		return fmt.Errorf("payment of order %s cannot go from %s to %s", p.s.OrderID, p.s.Status, next)
	}
	p.s.Status, p.s.UpdatedAt = next, at
	return nil
}

// Refunded is the sum of the pending and succeeded refunds: what has left the balance.
func (s PaymentState) Refunded() Money {
	sum := Money{Currency: s.Amount.Currency}
	for _, r := range s.Refunds {
		if r.Status != RefundFailed {
			sum.Amount += r.Amount.Amount // bounded by Amount: RequestRefund refuses more
		}
	}
	return sum
}

// Balance is what can still be refunded: nothing before the charge has succeeded.
func (s PaymentState) Balance() Money {
	if s.Status != PaymentSucceeded {
		return Money{Currency: s.Amount.Currency}
	}
	return Money{s.Amount.Amount - s.Refunded().Amount, s.Amount.Currency}
}

// RequestRefund adds a pending refund. It refuses with order_not_refundable, currency_mismatch or
// refund_exceeds_charge; the sum of all refunds never exceeds the charge.
func (p *Payment) RequestRefund(r Refund) error {
	switch {
	case p.s.Status != PaymentSucceeded:
		return Refuse(CodeOrderNotRefundable, "The order's payment has not succeeded, so nothing can be refunded.")
	case r.Amount.Currency != p.s.Amount.Currency:
		return Refuse(CodeCurrencyMismatch, "The order was paid in "+p.s.Amount.Currency+".")
	case r.Amount.Amount <= 0:
		return Violations{{"amount/amount", "range", "must be at least 1"}}.Err()
	case r.Amount.Amount > p.s.Balance().Amount:
		return Refuse(CodeRefundExceedsCharge, "The refund is larger than what is left of the charge.")
	}
	r.Status = RefundPending
	p.s.Refunds = append(slices.Clone(p.s.Refunds), r)
	p.s.UpdatedAt = r.CreatedAt
	return nil
}

// Refund returns the refund with that id.
func (p *Payment) Refund(id uuid.UUID) (Refund, bool) {
	i := p.refund(id)
	if i < 0 {
		return Refund{}, false
	}
	return p.s.Refunds[i], true
}

// AttemptRefund notes that the provider is about to be asked for a refund; it tells whether that was the first time.
func (p *Payment) AttemptRefund(id uuid.UUID, at time.Time) bool {
	i := p.refund(id)
	if i < 0 || !p.s.Refunds[i].AttemptedAt.IsZero() {
		return false
	}
	p.s.Refunds = slices.Clone(p.s.Refunds)
	p.s.Refunds[i].AttemptedAt, p.s.UpdatedAt = at, at
	return true
}

// SettleRefund notes the provider's final answer to a pending refund.
func (p *Payment) SettleRefund(id uuid.UUID, outcome RefundStatus, at time.Time) error {
	i := p.refund(id)
	if i < 0 || p.s.Refunds[i].Status != RefundPending || outcome == RefundPending {
		return fmt.Errorf("refund %s of order %s cannot become %s", id, p.s.OrderID, outcome)
	}
	p.s.Refunds = slices.Clone(p.s.Refunds)
	p.s.Refunds[i].Status, p.s.UpdatedAt = outcome, at
	return nil
}

func (p *Payment) refund(id uuid.UUID) int {
	return slices.IndexFunc(p.s.Refunds, func(r Refund) bool { return r.ID == id })
}

// ValidPaymentMethod tells whether s can be the provider's token of a payment method.
func ValidPaymentMethod(s string) bool { return validToken(s, 1, 255) }

func validToken(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	return !slices.ContainsFunc([]byte(s), func(b byte) bool { return b < 0x21 || b > 0x7e })
}
