package app

import (
	"context"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// PaymentGateway is the payment provider. An error of any method means that the outcome is not known: the same call
// with the same key may be made again, within the horizon in which the provider keeps keys. A definite answer, be it
// a decline, is never an error.
type PaymentGateway interface {
	// ChargePaused is ErrProviderPaused while Charge would answer so. It asks nobody.
	ChargePaused() error
	Charge(ctx context.Context, r ChargeRequest) (ChargeAnswer, error)
	// FindCharge looks an order's charge up without making one. False: the provider has none.
	FindCharge(ctx context.Context, ref OrderRef) (ChargeAnswer, bool, error)
	Refund(ctx context.Context, r oldRefundRequest) (RefundAnswer, error)
	// FindRefund looks a refund up without making one. False: the provider has none.
	FindRefund(ctx context.Context, r oldRefundRequest) (RefundAnswer, bool, error)
}

// ChargeRequest is one charge; equal in every attempt, as is the provider key that the gateway derives from Ref.
type ChargeRequest struct {
	Ref           OrderRef
	Amount        domain.Money
	PaymentMethod string
}

// ChargeAnswer is the provider's final word on a charge.
type ChargeAnswer struct {
	ChargeID  string // set when it succeeded
	Succeeded bool   // false: declined, and nothing was charged
	Refusal   string // why not, in the provider's codes: for the log
}

// oldRefundRequest is one refund of a charge; equal in every attempt.
type oldRefundRequest struct {
	Ref      OrderRef
	RefundID uuid.UUID
	ChargeID string
	Amount   domain.Money
}

// RefundAnswer is the provider's final word on a refund.
type RefundAnswer struct {
	Succeeded bool   // false: the provider refused it or it failed on its way
	Refusal   string // why not, in the provider's codes: for the log
}
