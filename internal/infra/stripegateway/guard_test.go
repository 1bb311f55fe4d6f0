package stripegateway_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/stripegateway"
)

// pausedOf counts how many of n calls were not made.
func pausedOf(ctx context.Context, g app.PaymentProvider, name string, n int) (paused int) {
	for range n {
		if errors.Is(call(ctx, g, name), app.ErrProviderPaused) {
			paused++
		}
	}
	return paused
}

// Ensure a failing provider is left alone after ten failures in a row, by that kind of call only, and that what it says
// of single orders, however often, is no reason.
func TestGuardLeavesAFailingProviderAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		calls  int // of twelve that reach the provider
	}{
		"its own error":        {500, problem("api_error", ""), 10},
		"too many requests":    {429, problem("invalid_request_error", "rate_limit"), 10},
		"our key is not valid": {401, problem("invalid_request_error", ""), 10},
		"our key may not":      {403, problem("invalid_request_error", ""), 10},
		"garbage":              {200, "Luck", 10},
		"a refused request":    {400, problem("invalid_request_error", ""), 12},
		"other parameters":     {400, problem("idempotency_error", ""), 12},
		"a key in use":         {409, problem("idempotency_error", "idempotency_key_in_use"), 12},
		"a declined card":      {402, problem("card_error", "card_declined"), 12},
		"a mismatch":           {200, intentJSON("amount", "1"), 12},
		"an unknown status":    {200, intentJSON("status", `"new"`), 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := answers(t, test.status, test.body)
			g := stripegateway.Guard(p.gateway(time.Minute))
			require.Equal(t, 12-test.calls, pausedOf(t.Context(), g, "confirm", 12))
			require.Len(t, p.requests(), test.calls)
			_ = call(t.Context(), g, "retrieve")
			require.Len(t, p.requests(), test.calls+1, "another kind of call")
		})
	}
}

// Ensure each kind of call is guarded, and by a circuit of its own.
func TestGuardKnowsEveryCall(t *testing.T) {
	t.Parallel()
	kinds := []string{"create", "confirm", "cancel", "refund", "retrieve", "search", "list of refunds", "intents"}
	p := answers(t, 500, "")
	g := stripegateway.Guard(p.gateway(time.Minute))
	for _, kind := range kinds {
		require.Equal(t, 1, pausedOf(t.Context(), g, kind, 11), kind)
	}
	require.Len(t, p.requests(), 10*len(kinds))
}

// Ensure calls that were ended because the worker stops are no failures of the provider, and an answer that does not
// come in time is one.
func TestGuardTellsAnEndFromATimeout(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	g := stripegateway.Guard(p.gateway(10 * time.Millisecond))
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the worker stops"))
	require.Zero(t, pausedOf(ended, g, "confirm", 12))
	require.Equal(t, 2, pausedOf(t.Context(), g, "confirm", 12))
}

// scripted answers every confirmation with one error and counts them.
type scripted struct {
	app.PaymentProvider
	calls atomic.Int64
	err   error
}

func (s *scripted) ConfirmIntent(context.Context, app.IntentRequest) (app.Intent, error) {
	s.calls.Add(1)
	return app.Intent{}, s.err
}

// pass lets the clock of a synctest bubble run on. It waits for nothing.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock, not a real one

// Ensure a 429 keeps all calls of its kind waiting for as long as it asks, and no longer.
func TestGuardHeedsRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: &app.RateLimitedError{After: 30 * time.Second}}
		g := stripegateway.Guard(s)
		require.NotErrorIs(t, call(t.Context(), g, "confirm"), app.ErrProviderPaused)
		pass(29 * time.Second)
		require.ErrorIs(t, call(t.Context(), g, "confirm"), app.ErrProviderPaused)
		require.EqualValues(t, 1, s.calls.Load())
		pass(time.Second)
		s.err = nil
		require.NoError(t, call(t.Context(), g, "confirm"))
	})
}

// Ensure a pause ends with one call, whose outcome decides, and that a call that was ended decides nothing.
func TestGuardTriesAgain(t *testing.T) {
	t.Parallel()
	down := call(t.Context(), answers(t, 500, "").gateway(time.Minute), "confirm")
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: down}
		g := stripegateway.Guard(s)
		require.Equal(t, 1, pausedOf(t.Context(), g, "confirm", 11))
		pass(6 * time.Second)
		require.Equal(t, 1, pausedOf(t.Context(), g, "confirm", 2))
		pass(6 * time.Second)
		s.err = context.Canceled
		require.Zero(t, pausedOf(t.Context(), g, "confirm", 3))
		s.err = nil
		require.Zero(t, pausedOf(t.Context(), g, "confirm", 20))
	})
}
