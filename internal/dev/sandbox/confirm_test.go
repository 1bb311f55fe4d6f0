package sandbox_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// create makes an unconfirmed intent for an order.
func (b *bench) create(order, method string) *stripe.PaymentIntent {
	b.t.Helper()
	p := chargeParams(order, method)
	p.Confirm, p.ErrorOnRequiresAction = nil, nil
	p.SetIdempotencyKey("order:" + order + ":intent")
	if method == "" {
		p.PaymentMethod = nil
	}
	pi, err := b.stripe.V1PaymentIntents.Create(b.t.Context(), p)
	if err != nil {
		b.t.Fatalf("create for %s: %v", order, err)
	}
	return pi
}

func (b *bench) confirm(id, key string) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentConfirmParams{ErrorOnRequiresAction: stripe.Bool(true)}
	p.SetIdempotencyKey(key)
	return b.stripe.V1PaymentIntents.Confirm(b.t.Context(), id, p)
}

func (b *bench) cancel(id, key string) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentCancelParams{}
	p.SetIdempotencyKey(key)
	return b.stripe.V1PaymentIntents.Cancel(b.t.Context(), id, p)
}

// Ensure an intent moves no money until it is confirmed, and then exactly once.
func TestConfirm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_visa")
	equal(t, "created", pi.Status, stripe.PaymentIntentStatusRequiresConfirmation)
	equal(t, "charges before", len(b.Ledger().Charges), 0)
	pi, err := b.confirm(pi.ID, "k")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "confirmed", pi.Status, stripe.PaymentIntentStatusSucceeded)
	again, err := b.confirm(pi.ID, "k")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "replayed", again.LatestCharge.ID, pi.LatestCharge.ID)
	equal(t, "charges", len(b.Ledger().Charges), 1)
}

// in brings a fresh intent into a state.
func (b *bench) in(status string) *stripe.PaymentIntent {
	b.t.Helper()
	switch status {
	case "requires_payment_method":
		return b.create(status, "")
	case "declined":
		pi := b.create(status, "pm_card_chargeDeclined")
		_, _ = b.confirm(pi.ID, "declined")
		return pi
	case "processing":
		b.faults(rule(sandbox.OpCharge, sandbox.FaultProcessing, 1))
		pi := b.create(status, "pm_card_visa")
		_, _ = b.confirm(pi.ID, "processing")
		return pi
	case "succeeded":
		return b.mustCharge(status, "pm_card_visa")
	case "canceled":
		pi := b.create(status, "pm_card_visa")
		_, _ = b.cancel(pi.ID, "canceled")
		return pi
	case "requires_action":
		pi := b.create(status, "pm_card_authenticationRequired")
		b.post(intents+"/"+pi.ID+"/confirm", "action", url.Values{})
		return pi
	default:
		return b.create(status, "pm_card_visa")
	}
}

// Ensure each state refuses what Stripe says that it refuses, with the intent in the error, and changes nothing; and that
// the refusal is saved under its key, since its execution began.
func TestStatesRefuse(t *testing.T) {
	t.Parallel()
	for state, says := range map[string][2]string{ // to confirm, to cancel; empty: it may
		"requires_payment_method": {"it's missing a payment method", ""},
		"declined":                {"it's missing a payment method", ""},
		"requires_confirmation":   {"", ""},
		"requires_action":         {"", ""},
		"processing":              {"it has a status of processing", "it has a status of processing"},
		"succeeded":               {"it has already succeeded", "it has a status of succeeded"},
		"canceled":                {"it has a status of canceled", "it has a status of canceled"},
	} {
		for i, do := range []string{"confirm", "cancel"} {
			t.Run(state+"/"+do, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				pi := b.in(state)
				before := b.getIntent(pi.ID)
				r := b.post(intents+"/"+pi.ID+"/"+do, "k", url.Values{})
				if says[i] == "" {
					equal(t, "status", r.status, http.StatusOK)
					return
				}
				e := errorOf(t, r)
				equal(t, "status", r.status, http.StatusBadRequest)
				equal(t, "type", e.Type, stripe.ErrorTypeInvalidRequest)
				equal(t, "code", e.Code, stripe.ErrorCodePaymentIntentUnexpectedState)
				equal(t, "message", strings.Contains(e.Msg, says[i]), true)
				equal(t, "intent in the error", e.PaymentIntent.ID, pi.ID)
				equal(t, "intent", b.getIntent(pi.ID), before)
				again := b.post(intents+"/"+pi.ID+"/"+do, "k", url.Values{})
				equal(t, "saved", again.header.Get("Idempotent-Replayed"), "true")
			})
		}
	}
}

// getIntent is an intent as it is now, as text.
func (b *bench) getIntent(id string) string {
	b.t.Helper()
	return b.get(intents + "/" + id).body
}

func (b *bench) get(path string) reply {
	b.t.Helper()
	return b.do(http.MethodGet, path, http.Header{"Authorization": {"Bearer sk_test_raw"}}, "")
}

// Ensure a decline at the confirmation is saved under its key, and that the intent takes another card under another key.
func TestDeclineIsSaved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_chargeDeclined")
	for range 2 {
		_, err := b.confirm(pi.ID, "k1")
		equal(t, "code", stripeError(t, err).Code, stripe.ErrorCodeCardDeclined)
	}
	equal(t, "ledger", b.Ledger().Charges[0].Status, "failed")
	p := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa")}
	p.SetIdempotencyKey("k2")
	charged, err := b.stripe.V1PaymentIntents.Confirm(t.Context(), pi.ID, p)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", charged.Status, stripe.PaymentIntentStatusSucceeded)
	equal(t, "error gone", charged.LastPaymentError == nil, true)
	equal(t, "charges", len(b.Ledger().Charges), 1)
	equal(t, "ledger", b.Ledger().Charges[0].Status, "succeeded")
	_, err = b.confirm(pi.ID, "k1")
	equal(t, "the old key still says no", stripeError(t, err).Code, stripe.ErrorCodeCardDeclined)
}

// Ensure a payment method that was used before is refused without a code or a parameter, and that nothing is tried.
func TestPaymentMethodUsedBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_used_before")
	_, err := b.confirm(pi.ID, "k")
	e := stripeError(t, err)
	equal(t, "status", e.HTTPStatusCode, http.StatusBadRequest)
	equal(t, "type", e.Type, stripe.ErrorTypeInvalidRequest)
	equal(t, "code", e.Code, "")
	equal(t, "param", e.Param, "")
	equal(t, "message", strings.Contains(e.Msg, "It may not be used again."), true)
	_, err = b.charge("o2", "pm_card_used_before")
	equal(t, "at creation", stripeError(t, err).HTTPStatusCode, http.StatusBadRequest)
	equal(t, "charges", len(b.Ledger().Charges), 0)
	equal(t, "state", strings.Contains(b.getIntent(pi.ID), `"status":"requires_confirmation"`), true)
}

// Ensure parameters that the sandbox does not know are refused before anything executes, with the key left free.
func TestConfirmAndCancelValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_visa")
	for path, bad := range map[string]url.Values{
		"confirm": {"return_url": {"x"}}, "confirm?": {"error_on_requires_action": {"maybe"}},
		"confirm??": {"payment_method": {"pm_none"}}, "cancel": {"cancellation_reason": {"abandoned"}}, "cancel?": {"amount": {"1"}},
	} {
		r := b.post(intents+"/"+pi.ID+"/"+strings.TrimRight(path, "?"), "k", bad)
		equal(t, path, r.status, http.StatusBadRequest)
	}
	if _, err := b.confirm(pi.ID, "k"); err != nil {
		t.Errorf("the key was spent on a refusal: %v", err)
	}
	for _, do := range []string{"confirm", "cancel"} {
		equal(t, do, b.post(intents+"/pi_none/"+do, "", nil).status, http.StatusNotFound)
	}
}

// Ensure a customer who is not there is declined where the bank wants to see them, and asked where they may be there.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("away", "pm_card_authenticationRequired")
	e := errorOf(t, b.post(intents+"/"+pi.ID+"/confirm", "", url.Values{"error_on_requires_action": {"true"}}))
	equal(t, "away", e.Code, stripe.ErrorCodeAuthenticationRequired)
	pi = b.create("here", "pm_card_authenticationRequired")
	r := b.post(intents+"/"+pi.ID+"/confirm", "", url.Values{})
	equal(t, "asked", strings.Contains(r.body, `"status":"requires_action"`), true)
}

// Ensure a charge in processing stays there until it is told how it ends, both ways.
func TestProcessing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.in("processing")
	equal(t, "ledger", b.Ledger().Charges[0].Status, "pending")
	if err := b.FinishProcessing(pi.ID, true); err != nil {
		t.Fatal(err)
	}
	equal(t, "ledger", b.Ledger().Charges[0].Status, "succeeded")
	equal(t, "once only", b.FinishProcessing(pi.ID, true) != nil, true)

	b.faults(rule(sandbox.OpCharge, sandbox.FaultProcessing, 1))
	other := b.mustCharge("o2", "pm_card_visa")
	equal(t, "failed", b.FinishProcessing(other.ID, false), nil)
	equal(t, "ledger", b.Ledger().Charges[1].Status, "failed")
	equal(t, "method gone", strings.Contains(b.getIntent(other.ID), `"payment_method":null`), true)
}

// Ensure that of many confirmations under different keys and one cancellation exactly one has its way.
func TestOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_visa")
	const callers = 20
	start, won := make(chan struct{}), make(chan string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-start
			do, key := b.confirm, strconv.Itoa(i)
			if i%4 == 0 {
				do = b.cancel
			}
			if got, err := do(pi.ID, key); err == nil {
				won <- string(got.Status)
			}
		})
	}
	close(start)
	all.Wait()
	equal(t, "winners", len(won), 1)
	status := <-won
	equal(t, "charges", len(b.Ledger().Charges), map[string]int{"succeeded": 1, "canceled": 0}[status])
}
