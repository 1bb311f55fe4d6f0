package stripegateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// problem is an error as Stripe sends it. Its message names a card, which must not travel on.
func problem(kind, code string) string {
	return `{"error":{"type":"` + kind + `","code":"` + code + `","message":"No luck with 4242 4242 4242 4242"}}`
}

// about is a problem with a parameter.
func about(code, param string) string {
	return strings.Replace(problem("invalid_request_error", code), `"code"`, `"param":"`+param+`","code"`, 1)
}

type anAnswer struct {
	status int
	body   string
}

// unknownAnswers are those after which nobody can tell whether money moved, or which an operator can mend.
func unknownAnswers() map[string]anAnswer {
	return map[string]anAnswer{
		"our key is not valid":              {401, problem("invalid_request_error", "")},
		"our key may not do this":           {403, problem("invalid_request_error", "")},
		"the provider's own error":          {500, problem("api_error", "")},
		"a gateway in between":              {502, `<html>Bad gateway</html>`},
		"the provider is down":              {503, ``},
		"the key is at work":                {409, problem("idempotency_error", "idempotency_key_in_use")},
		"an object is locked":               {409, problem("invalid_request_error", "lock_timeout")},
		"the key was used for another call": {400, problem("idempotency_error", "")},
		"too many requests":                 {429, problem("invalid_request_error", "rate_limit")},
		"an error that is no JSON":          {400, `nonsense`},
		"an error of no known type":         {400, problem("surprise_error", "")},
		"a currency we cannot take":         {400, about("", "currency")},
		"a parameter it does not know":      {400, about("parameter_unknown", "metadata")},
		"test keys with live objects":       {404, about("resource_missing", "payment_intent")},
		"our account is restricted":         {400, problem("invalid_request_error", "account_invalid")},
		"our balance is too low":            {400, problem("invalid_request_error", "balance_insufficient")},
		"a success that is no JSON":         {200, `nonsense`},
		"a success cut short":               {200, `{"id":"pi_1","status":"succ`},
	}
}

// Ensure an answer that leaves the outcome open is an error for every call, so that it is asked for again, and that it
// was asked for once: the job queue owns the retries.
func TestUnknownAnswersAreErrors(t *testing.T) {
	t.Parallel()
	for name, a := range unknownAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answers(t, a.status, a.body)
			requireAllUnknown(t, p, time.Minute)
		})
	}
}

// requireAllUnknown makes each call once.
func requireAllUnknown(t *testing.T, p *provider, timeout time.Duration) {
	t.Helper()
	g, ctx := p.gateway(timeout), t.Context()
	_, err := g.Charge(ctx, charge)
	requireUnknown(t, err)
	_, err = g.Refund(ctx, refund)
	requireUnknown(t, err)
	require.Eventually(t, func() bool { return len(p.requests()) == 2 }, time.Minute, time.Millisecond,
		"a call was retried under the job queue's feet")
	_, _, err = g.FindCharge(ctx, ref)
	requireUnknown(t, err)
	_, _, err = g.FindRefund(ctx, refund)
	requireUnknown(t, err)
}

// Ensure no answer at all is an error, too: the provider may have done what it was asked to.
func TestNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	t.Run("the connection is cut", func(t *testing.T) {
		t.Parallel()
		p := startProvider(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		requireAllUnknown(t, p, time.Minute)
	})
	t.Run("time runs out", func(t *testing.T) {
		t.Parallel()
		p := startProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		requireAllUnknown(t, p, 50*time.Millisecond)
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		p := &provider{url: "http://127.0.0.1:1"}
		_, err := p.gateway(time.Minute).Charge(t.Context(), charge)
		requireUnknown(t, err)
	})
}

// Ensure a definite no is an answer and no error: nothing was charged and nothing will be, so nobody asks again.
func TestRefusalsAreDeclines(t *testing.T) {
	t.Parallel()
	tests := map[string]anAnswer{
		"the card is declined":       {402, problem("card_error", "card_declined")},
		"the bank wants a challenge": {402, problem("card_error", "authentication_required")},
		"the amount is too small":    {400, about("amount_too_small", "amount")},
		"there is no such card":      {400, about("resource_missing", "payment_method")},
		"the card is not a card":     {404, about("", "payment_method")},
		"the intent lost its card":   {200, `{"id":"pi_1","status":"requires_payment_method"}`},
		"the intent is canceled":     {200, `{"id":"pi_1","status":"canceled"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := answers(t, test.status, test.body).gateway(time.Minute).Charge(t.Context(), charge)
			require.NoError(t, err)
			require.NotEmpty(t, answer.Refusal)
			require.NotContains(t, answer.Refusal, "4242")
			require.Equal(t, app.ChargeAnswer{Refusal: answer.Refusal}, answer)
		})
	}
}

// Ensure a charge is known by the id of its intent once it has succeeded, and has no outcome in the states between.
func TestChargeAnswers(t *testing.T) {
	t.Parallel()
	answer, err := answers(t, 200, `{"id":"pi_1","status":"succeeded"}`).gateway(time.Minute).Charge(t.Context(), charge)
	require.NoError(t, err)
	require.Equal(t, app.ChargeAnswer{ChargeID: "pi_1", Succeeded: true}, answer)
	for _, status := range []string{"requires_action", "requires_confirmation", "requires_capture", "something_new", ""} {
		_, err := answers(t, 200, `{"id":"pi_1","status":"`+status+`"}`).gateway(time.Minute).Charge(t.Context(), charge)
		require.ErrorContains(t, err, "payment intent is "+status)
	}
}

// sequence answers a creation with one status and the reading of what was created with another.
func sequence(t *testing.T, created, read string) *provider {
	t.Helper()
	return startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		status := created
		if r.Method == http.MethodGet {
			status = read
		}
		reply(w, http.StatusOK, `{"id":"x_1","status":"`+status+`"}`)
	})
}

// Ensure a charge that is still on its way is read: the key repeats the answer of the creation for ever.
func TestChargeInProcessIsRead(t *testing.T) {
	t.Parallel()
	p := sequence(t, "processing", "succeeded")
	answer, err := p.gateway(time.Minute).Charge(t.Context(), charge)
	require.NoError(t, err)
	require.Equal(t, app.ChargeAnswer{ChargeID: "x_1", Succeeded: true}, answer)
	require.Equal(t, "/v1/payment_intents/x_1", p.requests()[1].path)

	answer, err = sequence(t, "processing", "requires_payment_method").gateway(time.Minute).Charge(t.Context(), charge)
	require.NoError(t, err)
	require.False(t, answer.Succeeded)
	_, err = sequence(t, "processing", "processing").gateway(time.Minute).Charge(t.Context(), charge)
	require.ErrorContains(t, err, "processing")
}

// Ensure a refund has an outcome when it has succeeded or failed, that a pending one is read, and that a refusal is a
// failure.
func TestRefundAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		created, read string
		succeeded     bool
		unknown       bool
	}{
		{"succeeded", "", true, false},
		{"failed", "", false, false},
		{"canceled", "", false, false},
		{"pending", "succeeded", true, false},
		{"pending", "failed", false, false},
		{"pending", "pending", false, true},
		{"requires_action", "", false, true},
		{"", "", false, true},
	}
	for _, test := range tests {
		answer, err := sequence(t, test.created, test.read).gateway(time.Minute).Refund(t.Context(), refund)
		require.Equal(t, test.unknown, err != nil, test)
		require.Equal(t, test.succeeded, answer.Succeeded, test)
		require.Equal(t, test.succeeded || test.unknown, answer.Refusal == "", test)
	}
	for _, body := range []string{
		problem("invalid_request_error", "charge_already_refunded"), problem("invalid_request_error", "charge_disputed"),
		about("", "amount"),
	} {
		answer, err := answers(t, 400, body).gateway(time.Minute).Refund(t.Context(), refund)
		require.NoError(t, err)
		require.False(t, answer.Succeeded)
		require.NotEmpty(t, answer.Refusal)
	}
}

// Ensure every attempt at a call sends the same bytes under the same key: Stripe refuses a key with other parameters.
func TestAttemptsAreEqual(t *testing.T) {
	t.Parallel()
	p := answers(t, 500, problem("api_error", ""))
	for range 20 { // more than chance can keep in order
		_, _ = p.gateway(time.Minute).Charge(t.Context(), charge)
		_, _ = p.gateway(time.Minute).Refund(t.Context(), refund)
	}
	seen := p.requests()
	for i, r := range seen {
		require.Equal(t, seen[i%2], r)
	}
	require.NotEqual(t, seen[0].key, seen[1].key)
}
