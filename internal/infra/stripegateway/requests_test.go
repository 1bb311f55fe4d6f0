package stripegateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

func lastKey(t *testing.T, p *provider) string {
	t.Helper()
	seen := p.requests()
	require.NotEmpty(t, seen)
	return seen[len(seen)-1].key
}

// Ensure each call has a key of its own, with the tenant in it, and each generation another one.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := answers(t, 500, "")
	g, id := p.gateway(time.Minute), ref.OrderID.String()
	key := func(name string, generation int) string {
		r, rr := charge, refund
		r.Generation, rr.Generation = generation, generation
		switch name {
		case "create":
			_, _ = g.CreateIntent(t.Context(), r)
		case "confirm":
			_, _ = g.ConfirmIntent(t.Context(), r)
		case "cancel":
			_, _ = g.CancelIntent(t.Context(), r)
		default:
			_, _ = g.CreateRefund(t.Context(), rr)
		}
		return lastKey(t, p)
	}
	for name, want := range map[string]string{
		"create": "order:default:" + id + ":intent", "confirm": "order:default:" + id + ":confirm",
		"cancel": "order:default:" + id + ":cancel", "refund": "refund:default:" + refund.RefundID.String(),
	} {
		require.Equal(t, want, key(name, 1))
		require.Equal(t, want+":2", key(name, 2))
		require.Equal(t, want+":17", key(name, 17))
	}
}

// Ensure a tenant of any text makes a key that Stripe takes, and no two tenants share one.
func TestKeysOfTenants(t *testing.T) {
	t.Parallel()
	p := answers(t, 500, "")
	keys := map[string]string{}
	for _, tenant := range []string{
		"acme", "Acme", "acme:1", "acme 1", " acme", "äcme", strings.Repeat("a", 64), strings.Repeat("a", 65),
		strings.Repeat("a", 255), "", "~", "a\"b\\c'd", "line\r\nInjected: header",
	} {
		r := charge
		r.Ref.Tenant = tenant
		_, err := p.gateway(time.Minute).CreateIntent(t.Context(), r)
		require.ErrorIs(t, err, app.ErrKeyUnusable, "the request was made")
		key := lastKey(t, p)
		require.Regexp(t, `^[!-~]{1,255}$`, key)
		require.NotContains(t, keys, key, tenant)
		keys[key] = tenant
	}
	hashed := keyOf(t, strings.Repeat("a", 65))
	require.NotEqual(t, hashed, keyOf(t, strings.Split(hashed, ":")[1]), "a tenant that is named like another's hash")
}

func keyOf(t *testing.T, tenant string) string {
	t.Helper()
	p, r := answers(t, 500, ""), charge
	r.Ref.Tenant = tenant
	_, _ = p.gateway(time.Minute).CreateIntent(t.Context(), r)
	return lastKey(t, p)
}

// Ensure every attempt at a call sends the same parameters under the same key: Stripe refuses a key with others.
func TestAttemptsAreEqual(t *testing.T) {
	t.Parallel()
	p := answers(t, 500, problem("api_error", ""))
	for range 20 { // more than chance can keep in order
		for _, c := range keyedCalls {
			_ = call(t.Context(), p.gateway(time.Minute), c)
		}
	}
	seen := p.requests()
	for i, r := range seen {
		require.Equal(t, seen[i%len(keyedCalls)], r)
	}
}

// Ensure no request tells Stripe more than it asks for: no telemetry header.
func TestNoTelemetry(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Stripe-Client-Telemetry") != "" {
			reply(w, 500, "")
			return
		}
		reply(w, 200, intentJSON())
	})
	g := p.gateway(time.Minute)
	for range 3 { // it is sent with the call after
		require.NoError(t, call(t.Context(), g, "confirm"))
	}
}

// Ensure a request tells how long its body is, whether it has one or not, and arrives whole.
func TestRequestsTellTheirLength(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.ContentLength != int64(len(body)) {
			reply(w, 500, "")
			return
		}
		reply(w, 200, intentJSON())
	})
	for _, name := range []string{"create", "confirm", "cancel"} {
		require.NoError(t, call(t.Context(), p.gateway(time.Minute), name), name)
	}
}
