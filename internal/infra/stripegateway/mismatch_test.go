package stripegateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

const (
	anotherTenant = `{"tenant_id":"acme","order_id":"01980000-0000-7000-8000-000000000001","refund_id":"01980000-0000-7000-8000-000000000002"}`
	anotherOrder  = `{"tenant_id":"default","order_id":"01980000-0000-7000-8000-000000000009","refund_id":"01980000-0000-7000-8000-000000000002"}`
	anotherRefund = `{"tenant_id":"default","order_id":"01980000-0000-7000-8000-000000000001","refund_id":"01980000-0000-7000-8000-000000000009"}`
	noMetadata    = `{}`
)

// Ensure an answer about an intent is believed only if its id, amount, currency and metadata are those asked for.
func TestIntentMismatch(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"another intent":   {"id", `"pi_2"`},
		"no id":            {"id", ""},
		"another amount":   {"amount", "3999"},
		"no amount":        {"amount", ""},
		"another currency": {"currency", `"usd"`},
		"another tenant":   {"metadata", anotherTenant},
		"another order":    {"metadata", anotherOrder},
		"no metadata":      {"metadata", noMetadata},
	}
	for name, replaced := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := answers(t, 200, intentJSON(replaced...)).gateway(time.Minute)
			for _, c := range []string{"create", "confirm", "cancel", "retrieve"} {
				if c == "create" && name == "another intent" {
					continue // the provider chooses the id
				}
				require.ErrorIs(t, call(t.Context(), g, c), app.ErrMismatch, c)
			}
		})
	}
	for _, body := range []string{`null`, `"pi_1"`, `{}`, refundJSON()} {
		require.ErrorIs(t, call(t.Context(), answers(t, 200, body).gateway(time.Minute), "confirm"), app.ErrMismatch, body)
	}
}

// Ensure an answer about a refund is believed only if it is that refund, of that intent.
func TestRefundMismatch(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"no id":            {"id", ""},
		"another intent":   {"payment_intent", `"pi_2"`},
		"no intent":        {"payment_intent", "null"},
		"another amount":   {"amount", "999"},
		"another currency": {"currency", `"usd"`},
		"another tenant":   {"metadata", anotherTenant},
		"another order":    {"metadata", anotherOrder},
		"another refund":   {"metadata", anotherRefund},
		"no metadata":      {"metadata", noMetadata},
	}
	for name, replaced := range tests {
		g := answers(t, 200, refundJSON(replaced...)).gateway(time.Minute)
		require.ErrorIs(t, call(t.Context(), g, "refund"), app.ErrMismatch, name)
	}
}

// Ensure the refunds of an intent are its own; those that this service did not make are listed without a refund id.
func TestListedRefunds(t *testing.T) {
	t.Parallel()
	foreign := refundJSON("metadata", noMetadata, "amount", "5", "id", `"re_2"`)
	got, err := answers(t, 200, list(refundJSON(), foreign)).gateway(time.Minute).ListRefunds(t.Context(), charge)
	require.NoError(t, err)
	require.Equal(t, []app.ProviderRefund{
		{ID: "re_1", RefundID: refund.RefundID, IntentID: "pi_1", Amount: refund.Amount, Status: domain.RefundSucceeded},
		{ID: "re_2", IntentID: "pi_1", Amount: domain.Money{Amount: 5, Currency: "EUR"}, Status: domain.RefundSucceeded},
	}, got)
	for name, replaced := range map[string][]string{
		"another intent":   {"payment_intent", `"pi_2"`},
		"another currency": {"currency", `"usd"`},
		"another tenant":   {"metadata", anotherTenant},
		"another order":    {"metadata", anotherOrder},
		"a strange refund": {"metadata", `{"refund_id":"7"}`},
	} {
		_, err := answers(t, 200, list(refundJSON(replaced...))).gateway(time.Minute).ListRefunds(t.Context(), charge)
		require.ErrorIs(t, err, app.ErrMismatch, name)
	}
}

// Ensure a search finds the order's intents, leaves out another tenant's of the same order id, and believes no other
// amount.
func TestSearchedIntents(t *testing.T) {
	t.Parallel()
	body := list(intentJSON("metadata", anotherTenant, "id", `"pi_2"`), intentJSON(), intentJSON("id", `"pi_3"`, "status", `"canceled"`))
	got, err := answers(t, 200, body).gateway(time.Minute).SearchIntents(t.Context(), charge)
	require.NoError(t, err)
	require.Equal(t, []app.Intent{
		{ID: "pi_1", Status: app.IntentSucceeded, Amount: charge.Amount},
		{ID: "pi_3", Status: app.IntentCanceled, Amount: charge.Amount},
	}, got)
	require.ErrorIs(t, call(t.Context(), answers(t, 200, list(intentJSON("amount", "1"))).gateway(time.Minute), "search"), app.ErrMismatch)
}

// Ensure the statuses of an intent are Stripe's own, and one that is not known decides nothing.
func TestIntentStatuses(t *testing.T) {
	t.Parallel()
	for _, status := range []string{
		"requires_payment_method", "requires_confirmation", "requires_action", "processing", "succeeded", "canceled",
	} {
		got, err := answers(t, 200, intentJSON("status", `"`+status+`"`, "last_payment_error",
			`{"type":"card_error","code":"card_declined","message":"Luck 4242"}`)).gateway(time.Minute).RetrieveIntent(t.Context(), charge)
		require.NoError(t, err)
		require.Equal(t, app.Intent{
			ID: "pi_1", Status: app.IntentStatus(status), Amount: charge.Amount, LastError: "card_error/card_declined",
		}, got)
	}
	for _, status := range []string{"requires_capture", "something_new", "", "Luck 4242"} {
		err := call(t.Context(), answers(t, 200, intentJSON("status", `"`+status+`"`)).gateway(time.Minute), "confirm")
		requireSafe(t, err)
		require.ErrorContains(t, err, "unexpected status")
	}
}

// Ensure the statuses of a refund are mapped, and one that is not known decides nothing.
func TestRefundStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]domain.RefundStatus{
		"pending": domain.RefundPending, "requires_action": domain.RefundPending, "succeeded": domain.RefundSucceeded,
		"failed": domain.RefundFailed, "canceled": domain.RefundFailed,
	} {
		got, err := answers(t, 200, refundJSON("status", `"`+status+`"`, "failure_reason", `"lost_or_stolen_card"`)).
			gateway(time.Minute).CreateRefund(t.Context(), refund)
		require.NoError(t, err)
		require.Equal(t, app.ProviderRefund{
			ID: "re_1", RefundID: refund.RefundID, IntentID: "pi_1", Amount: refund.Amount, Status: want,
			Failure: "lost_or_stolen_card",
		}, got)
	}
	for _, status := range []string{"something_new", "", "Luck 4242"} {
		for _, c := range []string{"refund", "list of refunds"} {
			body := refundJSON("status", `"`+status+`"`)
			if c != "refund" {
				body = list(body)
			}
			err := call(t.Context(), answers(t, 200, body).gateway(time.Minute), c)
			requireSafe(t, err)
			require.ErrorContains(t, err, "unexpected status")
		}
	}
}
