package stripegateway

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// CreateIntent implements app.PaymentProvider.
func (g *Gateway) CreateIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	const doing = "create payment intent"
	params := &stripe.PaymentIntentCreateParams{
		Amount:             stripe.Int64(r.Amount.Amount),
		Currency:           stripe.String(strings.ToLower(r.Amount.Currency)),
		PaymentMethod:      stripe.String(r.PaymentMethod),
		PaymentMethodTypes: []*string{stripe.String("card")},
	}
	params.AddMetadata(metaTenant, r.Ref.Tenant)
	params.AddMetadata(metaOrder, r.Ref.OrderID.String())
	params.SetIdempotencyKey(intentKey(r, "intent"))
	intent, err := g.stripe.V1PaymentIntents.Create(ctx, params)
	if err != nil {
		return app.Intent{}, writeFailed(ctx, doing, err)
	}
	r.IntentID = intent.ID // the provider chooses it
	return checkedIntent(doing, intent, r)
}

// ConfirmIntent implements app.PaymentProvider. It sends no payment method. A declined intent no longer has one, so the
// provider refuses to confirm it again.
func (g *Gateway) ConfirmIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	const doing = "confirm payment intent"
	params := &stripe.PaymentIntentConfirmParams{
		ErrorOnRequiresAction: stripe.Bool(true), // no customer is present to authenticate: decline instead
	}
	params.SetIdempotencyKey(intentKey(r, "confirm"))
	intent, err := g.stripe.V1PaymentIntents.Confirm(ctx, r.IntentID, params)
	if err != nil {
		return app.Intent{}, writeFailed(ctx, doing, err)
	}
	return checkedIntent(doing, intent, r)
}

// CancelIntent implements app.PaymentProvider.
func (g *Gateway) CancelIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	const doing = "cancel payment intent"
	params := &stripe.PaymentIntentCancelParams{}
	params.SetIdempotencyKey(intentKey(r, "cancel"))
	intent, err := g.stripe.V1PaymentIntents.Cancel(ctx, r.IntentID, params)
	if err != nil {
		return app.Intent{}, writeFailed(ctx, doing, err)
	}
	return checkedIntent(doing, intent, r)
}

// RetrieveIntent implements app.PaymentProvider.
func (g *Gateway) RetrieveIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	const doing = "retrieve payment intent"
	intent, err := g.stripe.V1PaymentIntents.Retrieve(ctx, r.IntentID, nil)
	if err != nil {
		return app.Intent{}, readFailed(ctx, doing, err)
	}
	if r.Amount == (domain.Money{}) {
		r.Amount = toMoney(intent.Amount, intent.Currency) // there is no stored payment to compare it with
	}
	return checkedIntent(doing, intent, r)
}

// checkedIntent accepts an answer only if it matches the request and its status is known.
func checkedIntent(doing string, got *stripe.PaymentIntent, r app.IntentRequest) (app.Intent, error) {
	intent := intentOf(got)
	err := compare(doing,
		field{"id", validID(got.ID) && got.ID == r.IntentID},
		field{"amount", intent.Amount.Amount == r.Amount.Amount},
		field{"currency", intent.Amount.Currency == r.Amount.Currency},
		field{"metadata", refOf(got.Metadata) == r.Ref},
	)
	if err != nil {
		return app.Intent{}, err
	}
	if !knownIntentStatus(intent.Status) {
		return app.Intent{}, fmt.Errorf("%s: payment intent has the unexpected status %q", doing, intent.Status)
	}
	return intent, nil
}

// field is one field of an answer, and whether it matches the request.
type field struct {
	name string
	same bool
}

// compare returns app.ErrMismatch for the first field that does not match the request. The error does not quote the
// answer's value.
func compare(doing string, fields ...field) error {
	for _, f := range fields {
		if !f.same {
			return fmt.Errorf("%s: %w: another %s", doing, app.ErrMismatch, f.name)
		}
	}
	return nil
}

func intentOf(got *stripe.PaymentIntent) app.Intent {
	intent := app.Intent{
		ID: got.ID, Status: app.IntentStatus(token(string(got.Status))), Amount: toMoney(got.Amount, got.Currency),
	}
	if e := got.LastPaymentError; e != nil {
		intent.LastError = codesOf(e)
	}
	return intent
}

func toMoney(amount int64, currency stripe.Currency) domain.Money {
	return domain.Money{Amount: amount, Currency: strings.ToUpper(token(string(currency)))}
}

func knownIntentStatus(s app.IntentStatus) bool {
	switch s {
	case app.IntentRequiresPaymentMethod, app.IntentRequiresConfirmation, app.IntentRequiresAction,
		app.IntentProcessing, app.IntentSucceeded, app.IntentCanceled:
		return true
	default:
		return false
	}
}

var safeID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

// validID reports whether s can be the id of a Stripe object.
func validID(s string) bool { return safeID.MatchString(s) }
