package stripegateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// problem is an error as Stripe sends it. Its message names a card and a secret, which must not travel on.
func problem(kind, code string) string {
	return `{"error":{"type":"` + kind + `","code":"` + code + `","param":"amount","message":"No Luck with 4242 4242 4242 4242",` +
		`"payment_intent":{"id":"pi_1","client_secret":"pi_1_secret_XYZ"}}}`
}

// What an error tells a use case.
const (
	unknown     = "unknown"
	keyUnusable = "key unusable"
	refused     = "refused"
	final       = "refused for good"
	limited     = "rate limited"
	mismatch    = "mismatch"
)

func kindOf(err error) string {
	if r, ok := errors.AsType[*app.RefusedError](err); ok {
		if r.Final {
			return final
		}
		return refused
	}
	if _, ok := errors.AsType[*app.RateLimitedError](err); ok {
		return limited
	}
	switch {
	case errors.Is(err, app.ErrKeyUnusable):
		return keyUnusable
	case errors.Is(err, app.ErrMismatch):
		return mismatch
	default:
		return unknown
	}
}

type anAnswer struct {
	status       int
	body         string
	write, reads string // what it tells of a call with a key, and of one without
}

func failures() map[string]anAnswer {
	return map[string]anAnswer{
		"our key is not valid":             {401, problem("invalid_request_error", ""), unknown, unknown},
		"our key may not do this":          {403, problem("invalid_request_error", ""), unknown, unknown},
		"the provider's own error":         {500, problem("api_error", ""), keyUnusable, unknown},
		"a 5xx that says declined":         {500, problem("card_error", "card_declined"), keyUnusable, unknown},
		"a proxy's error":                  {502, `<html>Luck 4242</html>`, keyUnusable, unknown},
		"an error of 300 kB":               {503, `{"error":{"type":"` + strings.Repeat("4242", 75000) + `"}}`, keyUnusable, unknown},
		"the key is in use":                {409, problem("idempotency_error", "idempotency_key_in_use"), unknown, unknown},
		"an object is locked":              {409, problem("invalid_request_error", "lock_timeout"), unknown, unknown},
		"the key has other parameters":     {400, problem("idempotency_error", ""), keyUnusable, unknown},
		"too many requests":                {429, problem("invalid_request_error", "rate_limit"), limited, limited},
		"too many requests, says a proxy":  {429, `Luck`, limited, limited},
		"a decline":                        {402, problem("card_error", "card_declined"), refused, refused},
		"a refused request":                {400, problem("invalid_request_error", ""), refused, refused},
		"no such object":                   {404, problem("invalid_request_error", "resource_missing"), refused, refused},
		"another state":                    {400, problem("invalid_request_error", "payment_intent_unexpected_state"), refused, refused},
		"refunded already":                 {400, problem("invalid_request_error", "charge_already_refunded"), final, final},
		"disputed":                         {400, problem("invalid_request_error", "charge_disputed"), final, final},
		"a status of no meaning":           {418, problem("invalid_request_error", ""), unknown, unknown},
		"an error of no known type":        {400, problem("surprise_error", ""), unknown, unknown},
		"an error without a type":          {400, `{"error":{"message":"Luck 4242"}}`, unknown, unknown},
		"an error with a type of no token": {402, problem("card_error 4242", ""), unknown, unknown},
		"a proxy's 404":                    {404, `<html>Luck 4242</html>`, unknown, unknown},
		"garbage":                          {200, `Luck 4242`, unknown, unknown},
		"a success cut short":              {200, `{"id":"pi_1","client_secret":"pi_1_secret_4242`, unknown, unknown},
		"strange types":                    {200, `{"id":7,"data":7,"amount":"4242","metadata":[4242]}`, unknown, unknown},
		"nothing":                          {204, ``, unknown, unknown},
	}
}

// Ensure each failure tells every call what it has to: by status, type and code alone, and nothing of the body travels
// on.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, a := range failures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answers(t, a.status, a.body)
			for _, c := range keyedCalls {
				err := call(t.Context(), p.gateway(time.Minute), c)
				requireSafe(t, err)
				require.Equal(t, a.write, kindOf(err), "%s: %s", c, err)
			}
			for _, c := range reads {
				err := call(t.Context(), p.gateway(time.Minute), c)
				requireSafe(t, err)
				require.Equal(t, a.reads, kindOf(err), "%s: %s", c, err)
			}
			require.Len(t, p.requests(), len(allCalls()), "a call was retried: the job queue owns the schedule")
		})
	}
}

// Ensure the parameter and the message of an error decide nothing.
func TestIncidentalFieldsDecideNothing(t *testing.T) {
	t.Parallel()
	for _, param := range []string{"", `"param":"payment_method",`, `"param":"amount",`, `"message":"declined",`} {
		body := `{"error":{` + param + `"type":"invalid_request_error"}}`
		err := call(t.Context(), answers(t, 400, body).gateway(time.Minute), "confirm")
		r, ok := errors.AsType[*app.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, app.RefusedError{Code: "invalid_request_error"}, *r)
	}
}

// Ensure a refusal names the provider's codes, and a code that is no code is left out.
func TestRefusalCodes(t *testing.T) {
	t.Parallel()
	for codes, want := range map[string]string{
		`"code":"card_declined","decline_code":"insufficient_funds"`: "card_error/card_declined/insufficient_funds",
		`"code":"card_declined"`:                                     "card_error/card_declined",
		`"decline_code":"lost_card"`:                                 "card_error//lost_card",
		`"code":"4242 4242 4242 4242"`:                               "card_error",
		`"code":7`:                                                   "card_error",
		`"code":"` + strings.Repeat("a", 65) + `"`:                   "card_error",
		`"code":"line\nbreak"`:                                       "card_error",
	} {
		body := `{"error":{"type":"card_error",` + codes + `}}`
		err := call(t.Context(), answers(t, 402, body).gateway(time.Minute), "confirm")
		r, ok := errors.AsType[*app.RefusedError](err)
		require.True(t, ok, codes)
		require.Equal(t, want, r.Code)
	}
}

// Ensure a 429 tells how long to wait, in either form, within bounds, and by no clock of this machine.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": time.Second, "-5": time.Second, "86400": 5 * time.Minute, "": 0, "soon": 0, "99999999999999999999": 5 * time.Minute,
		now.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      time.Second,
		now.Add(time.Hour).Format(http.TimeFormat):       5 * time.Minute,
	} {
		p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.Header().Set("Date", now.Format(http.TimeFormat))
			reply(w, 429, problem("invalid_request_error", "rate_limit"))
		})
		r, ok := errors.AsType[*app.RateLimitedError](call(t.Context(), p.gateway(time.Minute), "confirm"))
		require.True(t, ok)
		require.Equal(t, want, r.After, value)
	}
}

// Ensure no answer leaves the outcome open, and tells it apart from a call that was ended here.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	cut := startProvider(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	silent := startProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the worker stops"))
	for _, c := range allCalls() {
		err := call(t.Context(), cut.gateway(time.Minute), c)
		requireSafe(t, err)
		require.Equal(t, unknown, kindOf(err))
		require.ErrorIs(t, call(t.Context(), silent.gateway(20*time.Millisecond), c), context.DeadlineExceeded)
		require.ErrorIs(t, call(ended, silent.gateway(time.Minute), c), context.Canceled)
		err = call(t.Context(), (&provider{url: "http://127.0.0.1:1"}).gateway(time.Minute), c)
		require.ErrorContains(t, err, "connection refused")
	}
}
