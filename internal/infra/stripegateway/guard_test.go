package stripegateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/stripegateway"
)

// Ensure a provider that is not well is left alone after ten failures in a row, by that kind of call only, and that what it
// says of single orders, however often, is no reason.
func TestGuardLeavesASickProviderAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer anAnswer
		calls  int // of twelve that reach the provider
	}{
		"its own error":        {anAnswer{500, problem("api_error", "")}, 10},
		"too many requests":    {anAnswer{429, problem("invalid_request_error", "rate_limit")}, 10},
		"our key is not valid": {anAnswer{401, problem("invalid_request_error", "")}, 10},
		"a currency":           {anAnswer{400, about("", "currency")}, 12},
		"a key at work":        {anAnswer{409, problem("idempotency_error", "idempotency_key_in_use")}, 12},
		"a declined card":      {anAnswer{402, problem("card_error", "card_declined")}, 12},
		"on its way":           {anAnswer{200, `{"id":"pi_1","status":"requires_action"}`}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answers(t, test.answer.status, test.answer.body)
			g := stripegateway.Guard(p.gateway(time.Minute))
			paused := 0
			for range 12 {
				if _, err := g.Charge(t.Context(), charge); errors.Is(err, app.ErrProviderPaused) {
					paused++
				}
			}
			require.Equal(t, 12-test.calls, paused)
			require.Len(t, p.requests(), test.calls)
			require.Equal(t, paused > 0, g.ChargePaused() != nil)
			_, _ = g.Refund(t.Context(), refund)
			require.Len(t, p.requests(), test.calls+1, "another kind of call")
		})
	}
}

// Ensure calls that were ended because the worker stops are no failures of the provider.
func TestGuardForgivesCallsThatWereEnded(t *testing.T) {
	t.Parallel()
	p := answers(t, 200, `{"id":"pi_1","status":"succeeded"}`)
	g := stripegateway.Guard(p.gateway(time.Minute))
	ended, end := context.WithCancel(t.Context())
	end()
	for range 12 {
		_, err := g.Charge(ended, charge)
		require.ErrorIs(t, err, context.Canceled)
	}
	answer, err := g.Charge(t.Context(), charge)
	require.NoError(t, err)
	require.True(t, answer.Succeeded)
}
