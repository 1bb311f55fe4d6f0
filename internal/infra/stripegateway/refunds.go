package stripegateway

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// CreateRefund implements app.PaymentProvider.
func (g *Gateway) CreateRefund(ctx context.Context, r app.RefundRequest) (app.ProviderRefund, error) {
	const doing = "create refund"
	params := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(r.IntentID),
		Amount:        stripe.Int64(r.Amount.Amount),
	}
	params.AddMetadata(metaTenant, r.Ref.Tenant)
	params.AddMetadata(metaOrder, r.Ref.OrderID.String())
	params.AddMetadata(metaRefund, r.RefundID.String())
	params.SetIdempotencyKey(refundKey(r))
	got, err := g.stripe.V1Refunds.Create(ctx, params)
	if err != nil {
		return app.ProviderRefund{}, writeFailed(ctx, doing, err)
	}
	refund := refundOf(got)
	err = compare(doing,
		field{"id", validID(refund.ID)},
		field{"payment intent", refund.IntentID == r.IntentID},
		field{"amount", refund.Amount.Amount == r.Amount.Amount},
		field{"currency", refund.Amount.Currency == r.Amount.Currency},
		field{"metadata", refOf(got.Metadata) == r.Ref && refund.RefundID == r.RefundID},
	)
	if err != nil {
		return app.ProviderRefund{}, err
	}
	return refund, knownRefundStatus(doing, refund)
}

// checkedRefund accepts a refund in the list of an intent's refunds. A refund without a refund id in its metadata was
// not made by this service. A refund with a refund id and another order's id is a mismatch.
func checkedRefund(doing string, got *stripe.Refund, r app.IntentRequest) (app.ProviderRefund, error) {
	refund := refundOf(got)
	_, claimed := got.Metadata[metaRefund]
	err := compare(doing,
		field{"id", validID(refund.ID)},
		field{"payment intent", refund.IntentID == r.IntentID},
		field{"currency", refund.Amount.Currency == r.Amount.Currency},
		field{"metadata", !claimed || refOf(got.Metadata) == r.Ref && refund.RefundID != [16]byte{}},
	)
	if err != nil {
		return app.ProviderRefund{}, err
	}
	return refund, knownRefundStatus(doing, refund)
}

func refundOf(got *stripe.Refund) app.ProviderRefund {
	refund := app.ProviderRefund{
		ID: got.ID, Amount: toMoney(got.Amount, got.Currency), Status: refundStatus(got.Status),
		Failure: token(string(got.FailureReason)),
	}
	refund.RefundID, _ = canonicalID(got.Metadata[metaRefund])
	if got.PaymentIntent != nil && validID(got.PaymentIntent.ID) {
		refund.IntentID = got.PaymentIntent.ID
	}
	return refund
}

// refundStatus maps Stripe's statuses. Unknown ones are returned unchanged.
func refundStatus(s stripe.RefundStatus) domain.RefundStatus {
	switch s {
	case stripe.RefundStatusPending, stripe.RefundStatusRequiresAction:
		return domain.RefundPending
	case stripe.RefundStatusSucceeded:
		return domain.RefundSucceeded
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		return domain.RefundFailed
	default:
		return domain.RefundStatus(token(string(s)))
	}
}

func knownRefundStatus(doing string, r app.ProviderRefund) error {
	switch r.Status {
	case domain.RefundPending, domain.RefundSucceeded, domain.RefundFailed:
		return nil
	default:
		return fmt.Errorf("%s: refund has the unexpected status %q", doing, r.Status)
	}
}
