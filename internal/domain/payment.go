package domain

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// PaymentStatus is the state of a payment; transitions.go lists the allowed transitions.
type PaymentStatus string

// The states of a payment.
const (
	PaymentPending   PaymentStatus = "pending"   // the provider has not decided yet
	PaymentSucceeded PaymentStatus = "succeeded" // charged
	PaymentFailed    PaymentStatus = "failed"    // declined or permanently refused; the order is cancelled
	PaymentCanceled  PaymentStatus = "canceled"  // never charged; the order is cancelled
)

// RefundStatus is the state of one refund: pending until the provider has answered.
type RefundStatus string

// The states of a refund. A succeeded refund can still fail: the customer's bank can return the money days later.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Payment is the aggregate of an order's charge and refunds. It is created with the order and has its own version.
type Payment struct{ s PaymentState }

// PaymentState is a payment's fields, for storage and responses.
type PaymentState struct {
	Tenant        string
	OrderID       OrderID
	Status        PaymentStatus
	Amount        Money
	PaymentMethod string // the provider's token of the card, never the card
	IntentID      string // the provider's PaymentIntent; empty: none is known yet
	KeyGeneration int    // of the provider's idempotency key of the next call; 1 at first
	Refusal       Refusal
	// LegacyAttemptAt is set only by the previous release, which created and confirmed an intent in one call: that call
	// may have charged.
	LegacyAttemptAt time.Time
	Refunds         []Refund
	CreatedAt       time.Time
	UpdatedAt       time.Time
	Version         int64
}

// Refusal is a refusal by the provider that is neither a decline nor transient: an operator must look at it.
type Refusal struct {
	Code  string    // the provider's codes, never its text; empty: no refusal
	Since time.Time // when the first refusal was recorded
}

// again returns a new refusal that keeps the time of the first one.
func (r Refusal) again(code string, at time.Time) Refusal {
	if r.Code == "" {
		r.Since = at
	}
	r.Code = code
	return r
}

// Refund is one refund of a charge.
type Refund struct {
	ID            uuid.UUID
	Amount        Money
	Status        RefundStatus
	Reason        string
	ProviderID    string    // the provider's id of the refund; empty: not known
	KeyGeneration int       // of the provider's idempotency key; 0: no call was made
	KeyFailedAt   time.Time // when a key last became unusable; zero: never
	Refusal       Refusal
	// LegacyAttemptAt is set only by the previous release, whose key the first generation then uses.
	LegacyAttemptAt time.Time
	CreatedAt       time.Time
}

// NewPayment makes the pending payment of an order.
func NewPayment(o OrderState, method string) *Payment {
	return &Payment{PaymentState{
		Tenant: o.Tenant, OrderID: o.ID, Status: PaymentPending, Amount: o.Total, PaymentMethod: method,
		KeyGeneration: 1, CreatedAt: o.CreatedAt, UpdatedAt: o.CreatedAt,
	}}
}

// RestorePayment rebuilds a payment from storage.
func RestorePayment(s PaymentState) *Payment { return &Payment{s} }

// State returns the payment's fields.
func (p *Payment) State() PaymentState { return p.s }

// Stored sets the version that the store gave the payment.
func (p *Payment) Stored(version int64) { p.s.Version = version }

// NoteIntent records the id of the unconfirmed intent, before any call that can charge it. A payment has one intent at
// a time.
func (p *Payment) NoteIntent(id string, at time.Time) error {
	if p.s.Status != PaymentPending || p.s.IntentID != "" || id == "" {
		return fmt.Errorf("payment of order %s is %s and cannot take intent %q", p.s.OrderID, p.s.Status, id)
	}
	p.s.IntentID, p.s.KeyGeneration, p.s.Refusal, p.s.LegacyAttemptAt = id, 1, Refusal{}, time.Time{}
	p.s.UpdatedAt = at
	return nil
}

// NextKey makes the next call use a new idempotency key, when the used one is no longer usable.
func (p *Payment) NextKey(used int, at time.Time) {
	if p.s.KeyGeneration == used {
		p.s.KeyGeneration, p.s.UpdatedAt = used+1, at
	}
}

// Refuse records that the provider refused the last call. It keeps the time of the first refusal.
func (p *Payment) Refuse(code string, at time.Time) {
	p.s.Refusal, p.s.UpdatedAt = p.s.Refusal.again(code, at), at
}

// Succeed records a successful charge. It also applies to a failed or canceled payment, because the money has moved.
func (p *Payment) Succeed(intentID string, at time.Time) error {
	if err := p.become(PaymentSucceeded, at); err != nil {
		return err
	}
	p.s.IntentID = intentID
	return nil
}

// Fail records that the charge was declined, or refused for too long.
func (p *Payment) Fail(at time.Time) error { return p.become(PaymentFailed, at) }

// Cancel records that nothing was charged and nothing will be charged.
func (p *Payment) Cancel(at time.Time) error { return p.become(PaymentCanceled, at) }

// Settled reports whether the provider has decided the charge.
func (p *Payment) Settled() bool { return p.s.Status != PaymentPending }

func (p *Payment) become(next PaymentStatus, at time.Time) error {
	if !slices.Contains(paymentTransitions()[p.s.Status], next) {
		return fmt.Errorf("payment of order %s cannot go from %s to %s", p.s.OrderID, p.s.Status, next)
	}
	p.s.Status, p.s.UpdatedAt = next, at
	return nil
}

// Refunded is the sum of the pending and succeeded refunds.
func (s PaymentState) Refunded() Money {
	sum := Money{Currency: s.Amount.Currency}
	for _, r := range s.Refunds {
		if r.Status != RefundFailed {
			sum.Amount += r.Amount.Amount // bounded by Amount: RequestRefund refuses more
		}
	}
	return sum
}

// RefundedThere is the sum of those refunds whose provider id is known.
func (s PaymentState) RefundedThere() Money {
	sum := Money{Currency: s.Amount.Currency}
	for _, r := range s.Refunds {
		if r.Status != RefundFailed && r.ProviderID != "" {
			sum.Amount += r.Amount.Amount
		}
	}
	return sum
}

// Balance is the amount that can still be refunded: zero before the charge has succeeded.
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

// StartRefund records that a call for a refund is about to be made. It reports whether this is the first call.
func (p *Payment) StartRefund(id uuid.UUID, at time.Time) (first bool) {
	p.changeRefund(id, at, func(r *Refund) {
		if first = r.KeyGeneration == 0 && r.LegacyAttemptAt.IsZero(); first {
			r.KeyGeneration = 1
		}
	})
	return first
}

// NextRefundKey makes the next attempt at a refund use a new idempotency key.
func (p *Payment) NextRefundKey(id uuid.UUID, used int, at time.Time) {
	p.changeRefund(id, at, func(r *Refund) {
		if r.KeyGeneration == used {
			r.KeyGeneration, r.KeyFailedAt, r.LegacyAttemptAt = used+1, at, time.Time{}
		}
	})
}

// RefuseRefund records that the provider refused a refund. It keeps the time of the first refusal.
func (p *Payment) RefuseRefund(id uuid.UUID, code string, at time.Time) {
	p.changeRefund(id, at, func(r *Refund) { r.Refusal = r.Refusal.again(code, at) })
}

// SettleRefund records the provider's outcome of a refund: pending becomes succeeded or failed, and a succeeded refund
// can still become failed. A failed refund is added back to the balance.
func (p *Payment) SettleRefund(id uuid.UUID, outcome RefundStatus, providerID string, at time.Time) error {
	r, ok := p.Refund(id)
	if !ok || !slices.Contains(refundTransitions()[r.Status], outcome) {
		return fmt.Errorf("refund %s of order %s cannot go from %q to %s", id, p.s.OrderID, r.Status, outcome)
	}
	if r.Status == RefundFailed && r.Amount.Amount > p.s.Balance().Amount {
		return fmt.Errorf("refund %s of order %s exceeds the balance", id, p.s.OrderID)
	}
	p.changeRefund(id, at, func(r *Refund) { r.Status, r.ProviderID = outcome, providerID })
	return nil
}

// IdentifyRefund records the provider's id of a refund that has none yet: the previous release does not record it.
func (p *Payment) IdentifyRefund(id uuid.UUID, providerID string, at time.Time) (changed bool) {
	if r, ok := p.Refund(id); !ok || r.ProviderID != "" {
		return false
	}
	p.changeRefund(id, at, func(r *Refund) { r.ProviderID = providerID })
	return true
}

// AdoptRefund adds a refund that exists at the provider and not in this payment. It fails if the refunds would exceed
// the charge.
func (p *Payment) AdoptRefund(r Refund) error {
	if _, known := p.Refund(r.ID); known || p.s.Status != PaymentSucceeded || r.Amount.Currency != p.s.Amount.Currency ||
		r.Amount.Amount <= 0 || r.Status != RefundFailed && r.Amount.Amount > p.s.Balance().Amount {
		return fmt.Errorf("refund %s does not fit the payment of order %s", r.ID, p.s.OrderID)
	}
	p.s.Refunds = append(slices.Clone(p.s.Refunds), r)
	p.s.UpdatedAt = r.CreatedAt
	return nil
}

// changeRefund changes a refund on a copy of the list, so that a State returned earlier does not change.
func (p *Payment) changeRefund(id uuid.UUID, at time.Time, change func(*Refund)) {
	i := p.refund(id)
	if i < 0 {
		return
	}
	p.s.Refunds = slices.Clone(p.s.Refunds)
	change(&p.s.Refunds[i])
	p.s.UpdatedAt = at
}

func (p *Payment) refund(id uuid.UUID) int {
	return slices.IndexFunc(p.s.Refunds, func(r Refund) bool { return r.ID == id })
}

// ValidPaymentMethod reports whether s can be the provider's token of a payment method.
func ValidPaymentMethod(s string) bool { return validToken(s, 1, 255) }

func validToken(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	return !slices.ContainsFunc([]byte(s), func(b byte) bool { return b < 0x21 || b > 0x7e })
}
