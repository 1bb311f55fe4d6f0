// Package stripegateway charges and refunds through Stripe: one PaymentIntent, confirmed at creation, for an order's
// charge, and one Refund for each refund. Every attempt sends the same key and the same parameters.
package stripegateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/app"
)

// Config says how to reach the provider.
type Config struct {
	APIKey    string
	BaseURL   string            // empty: Stripe's own
	Timeout   time.Duration     // of one call
	Transport http.RoundTripper // nil: the default one
}

// Gateway implements app.PaymentGateway.
type Gateway struct{ stripe *stripe.Client }

// New makes a Gateway. stripe-go's own retries are off: the job queue owns the schedule of attempts.
func New(c Config) *Gateway {
	backend := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Timeout: c.Timeout, Transport: c.Transport},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
	}
	if c.BaseURL != "" {
		backend.URL = stripe.String(c.BaseURL)
	}
	return &Gateway{stripe.NewClient(c.APIKey, stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))}
}

// metadata keys, by which charges and refunds are found again.
const (
	metaTenant = "tenant_id"
	metaOrder  = "order_id"
	metaRefund = "refund_id"
)

// ChargePaused implements app.PaymentGateway: see Guard.
func (g *Gateway) ChargePaused() error { return nil }

// Charge implements app.PaymentGateway.
func (g *Gateway) Charge(ctx context.Context, r app.ChargeRequest) (app.ChargeAnswer, error) {
	params := &stripe.PaymentIntentCreateParams{
		Amount:                stripe.Int64(r.Amount.Amount),
		Currency:              stripe.String(strings.ToLower(r.Amount.Currency)),
		Confirm:               stripe.Bool(true),
		PaymentMethod:         stripe.String(r.PaymentMethod),
		PaymentMethodTypes:    []*string{stripe.String("card")},
		ErrorOnRequiresAction: stripe.Bool(true), // nobody is there to answer a challenge
	}
	params.AddMetadata(metaTenant, r.Ref.Tenant)
	params.AddMetadata(metaOrder, r.Ref.OrderID.String())
	params.SetIdempotencyKey("order:" + r.Ref.OrderID.String() + ":charge")
	intent, err := g.stripe.V1PaymentIntents.Create(ctx, params)
	if err != nil {
		reason, err := refused("create payment intent", err, chargeRefused)
		return app.ChargeAnswer{Refusal: reason}, err
	}
	if intent.Status == stripe.PaymentIntentStatusProcessing {
		// The key replays the answer of the creation, so a later attempt has to read the intent to see it move on.
		if intent, err = g.stripe.V1PaymentIntents.Retrieve(ctx, intent.ID, nil); err != nil {
			return app.ChargeAnswer{}, unknown("retrieve payment intent", err)
		}
	}
	return answerOf(intent)
}

// FindCharge implements app.PaymentGateway. Stripe's search lags by up to a minute behind writes. It is asked only beyond
// the retry horizon, hours after the calls within it; what a call since then did under the key, the key still knows.
func (g *Gateway) FindCharge(ctx context.Context, ref app.OrderRef) (app.ChargeAnswer, bool, error) {
	params := &stripe.PaymentIntentSearchParams{}
	params.Query = fmt.Sprintf("metadata['%s']:'%s'", metaOrder, ref.OrderID)
	var last *stripe.PaymentIntent
	for intent, err := range g.stripe.V1PaymentIntents.Search(ctx, params).All(ctx) {
		if err != nil {
			return app.ChargeAnswer{}, false, unknown("search payment intents", err)
		}
		if intent.Metadata[metaTenant] != ref.Tenant {
			continue
		}
		last = intent
		if intent.Status == stripe.PaymentIntentStatusSucceeded {
			break
		}
	}
	if last == nil {
		return app.ChargeAnswer{}, false, nil
	}
	answer, err := answerOf(last)
	return answer, err == nil, err
}

// answerOf reads the final word from an intent; an intent that is still on its way has none.
func answerOf(intent *stripe.PaymentIntent) (app.ChargeAnswer, error) {
	switch intent.Status {
	case stripe.PaymentIntentStatusSucceeded:
		return app.ChargeAnswer{ChargeID: intent.ID, Succeeded: true}, nil
	case stripe.PaymentIntentStatusRequiresPaymentMethod, stripe.PaymentIntentStatusCanceled:
		return app.ChargeAnswer{Refusal: "payment intent is " + string(intent.Status)}, nil
	default:
		return app.ChargeAnswer{}, fmt.Errorf("payment intent is %s", intent.Status)
	}
}

// Refund implements app.PaymentGateway.
func (g *Gateway) Refund(ctx context.Context, r app.RefundRequest) (app.RefundAnswer, error) {
	params := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(r.ChargeID),
		Amount:        stripe.Int64(r.Amount.Amount),
	}
	params.AddMetadata(metaTenant, r.Ref.Tenant)
	params.AddMetadata(metaOrder, r.Ref.OrderID.String())
	params.AddMetadata(metaRefund, r.RefundID.String())
	params.SetIdempotencyKey("refund:" + r.RefundID.String())
	refund, err := g.stripe.V1Refunds.Create(ctx, params)
	if err != nil {
		reason, err := refused("create refund", err, refundRefused)
		return app.RefundAnswer{Refusal: reason}, err
	}
	if refund.Status == stripe.RefundStatusPending {
		if refund, err = g.stripe.V1Refunds.Retrieve(ctx, refund.ID, nil); err != nil {
			return app.RefundAnswer{}, unknown("retrieve refund", err)
		}
	}
	return refundAnswerOf(refund)
}

// FindRefund implements app.PaymentGateway.
func (g *Gateway) FindRefund(ctx context.Context, r app.RefundRequest) (app.RefundAnswer, bool, error) {
	params := &stripe.RefundListParams{PaymentIntent: stripe.String(r.ChargeID)}
	for refund, err := range g.stripe.V1Refunds.List(ctx, params).All(ctx) {
		if err != nil {
			return app.RefundAnswer{}, false, unknown("list refunds", err)
		}
		if refund.Metadata[metaRefund] == r.RefundID.String() {
			answer, err := refundAnswerOf(refund)
			return answer, err == nil, err
		}
	}
	return app.RefundAnswer{}, false, nil
}

func refundAnswerOf(refund *stripe.Refund) (app.RefundAnswer, error) {
	switch refund.Status {
	case stripe.RefundStatusSucceeded:
		return app.RefundAnswer{Succeeded: true}, nil
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		return app.RefundAnswer{Refusal: "refund is " + string(refund.Status)}, nil
	default:
		return app.RefundAnswer{}, fmt.Errorf("refund is %s", refund.Status)
	}
}
