package stripegateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/stripegateway"
)

func post(t *testing.T, url, body string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer sk_test_123")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// created is an unconfirmed intent for a payment method.
func created(t *testing.T, g app.PaymentProvider, method string) app.IntentRequest {
	t.Helper()
	r := charge
	r.PaymentMethod = method
	intent, err := g.CreateIntent(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, app.IntentRequiresConfirmation, intent.Status)
	r.IntentID = intent.ID
	return r
}

// Ensure a decline is a refusal, the intent then says so, and no later confirmation can charge it.
func TestDeclinedIntentCannotBeCharged(t *testing.T) {
	t.Parallel()
	for method, code := range map[string]string{
		"pm_card_chargeDeclinedInsufficientFunds": "card_error/card_declined/insufficient_funds",
		"pm_card_authenticationRequired":          "card_error/authentication_required",
	} {
		p, s := startSandbox(t)
		g := stripegatewayOf(p)
		r := created(t, g, method)
		_, err := g.ConfirmIntent(t.Context(), r)
		require.Equal(t, refused, kindOf(err))
		require.ErrorContains(t, err, code)

		intent, err := g.RetrieveIntent(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, app.IntentRequiresPaymentMethod, intent.Status)
		require.Contains(t, intent.LastError, code)

		r.Generation = 2
		_, err = g.ConfirmIntent(t.Context(), r)
		require.Equal(t, refused, kindOf(err))
		require.ErrorContains(t, err, "payment_intent_unexpected_state")
		for _, c := range s.Ledger().Charges {
			require.NotEqual(t, "succeeded", c.Status)
		}
	}
}

// Ensure the provider decides the race of a confirmation and a cancellation.
func TestConfirmationAgainstCancellation(t *testing.T) {
	t.Parallel()
	p, _ := startSandbox(t)
	g := stripegatewayOf(p)
	r := created(t, g, "pm_card_visa")
	_, err := g.CancelIntent(t.Context(), r)
	require.NoError(t, err)
	_, err = g.ConfirmIntent(t.Context(), r)
	require.Equal(t, refused, kindOf(err))

	r = charge
	r.Generation = 2
	intent, err := g.CreateIntent(t.Context(), r)
	require.NoError(t, err)
	r.IntentID = intent.ID
	_, err = g.ConfirmIntent(t.Context(), r)
	require.NoError(t, err)
	_, err = g.CancelIntent(t.Context(), r)
	require.Equal(t, refused, kindOf(err))
}

// Ensure a saved 500 makes a key unusable, whether the call was executed or not, and the next generation harmless.
func TestSavedErrors(t *testing.T) {
	t.Parallel()
	for kind, after := range map[string]string{sandbox.FaultError500: refused, sandbox.FaultError500Undone: ""} {
		p, s := startSandbox(t)
		g := stripegatewayOf(p)
		r := created(t, g, "pm_card_visa")
		require.NoError(t, s.SetFaults([]sandbox.FaultRule{{Operation: sandbox.OpConfirmIntent, Kind: kind, Times: 1}}))
		for range 2 { // the second is the saved one
			_, err := g.ConfirmIntent(t.Context(), r)
			require.ErrorIs(t, err, app.ErrKeyUnusable)
		}
		r.Generation = 2
		_, err := g.ConfirmIntent(t.Context(), r)
		if after == "" {
			require.NoError(t, err)
		} else {
			require.Equal(t, after, kindOf(err))
		}
		intent, err := g.RetrieveIntent(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, app.IntentSucceeded, intent.Status)
		require.Len(t, s.Ledger().Charges, 1)
	}
}

// Ensure a refund that cannot be given is refused for good, and one that can be is found again by its id.
func TestRefundsOfTheSandbox(t *testing.T) {
	t.Parallel()
	p, s := startSandbox(t)
	g := stripegatewayOf(p)
	r := created(t, g, "pm_card_visa")
	_, err := g.ConfirmIntent(t.Context(), r)
	require.NoError(t, err)
	rr := refund
	rr.IntentID, rr.Amount = r.IntentID, r.Amount
	made, err := g.CreateRefund(t.Context(), rr)
	require.NoError(t, err)
	require.Equal(t, domain.RefundSucceeded, made.Status)
	rr.Generation = 2
	_, err = g.CreateRefund(t.Context(), rr)
	require.Equal(t, final, kindOf(err))
	rr.Generation, rr.Amount.Amount = 1, 1
	_, err = g.CreateRefund(t.Context(), rr)
	require.ErrorIs(t, err, app.ErrKeyUnusable, "another amount under one key")

	require.NoError(t, s.FailRefund(made.ID))
	listed, err := g.ListRefunds(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Equal(t, domain.RefundFailed, listed[0].Status)
	require.Equal(t, refund.RefundID, listed[0].RefundID)
	require.NotEmpty(t, listed[0].Failure)
}

// Ensure paging through a stream meets every object once.
func TestPagesOfTheSandbox(t *testing.T) {
	t.Parallel()
	p, _ := startSandbox(t)
	g := stripegatewayOf(p)
	for generation := range 5 {
		r := charge
		r.Generation = generation + 1
		_, err := g.CreateIntent(t.Context(), r)
		require.NoError(t, err)
	}
	q := app.ProviderQuery{Stream: app.StreamIntents, Limit: 2}
	seen := map[string]bool{}
	for range 3 {
		page, err := g.List(t.Context(), q)
		require.NoError(t, err)
		for _, o := range page.Objects {
			require.Equal(t, ref, o.Ref)
			seen[o.Intent.ID] = true
		}
		require.Equal(t, len(seen) < 5, page.More)
		q.After = page.Last
	}
	require.Len(t, seen, 5)
}

// Ensure the parser reads what the sandbox delivers, with the signature of either secret.
func TestDeliveredEvents(t *testing.T) {
	t.Parallel()
	parser := stripegateway.NewEventParser(5*time.Minute, nextSecret)
	events := make(chan app.ProviderEvent, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := parser.ParseEvent(body, r.Header.Get("Stripe-Signature"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		events <- event
	}))
	t.Cleanup(receiver.Close)
	p, s := startSandbox(t)
	s.SetEventSecrets(currentSecret, nextSecret)
	s.SetEventsURL(receiver.URL)
	g := stripegatewayOf(p)
	r := created(t, g, "pm_card_visa")
	_, err := g.ConfirmIntent(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, s.OpenDispute(r.IntentID))
	require.NoError(t, s.WaitEventsDelivered(t.Context()))
	close(events)
	got := map[string]app.ProviderEvent{}
	for event := range events {
		require.Equal(t, r.IntentID, event.IntentID)
		got[event.Type] = event
	}
	require.Equal(t, ref, got["payment_intent.succeeded"].Ref)
	require.True(t, got["charge.dispute.created"].Dispute)
}
