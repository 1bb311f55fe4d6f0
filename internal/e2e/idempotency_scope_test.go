package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a key belongs to one tenant, one actor and one operation: each of them uses the same key for itself.
//
// Standard: litespec/ext/concurrency#scope-client-keys
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
func TestIdempotencyTheSameKeyOfAnotherScopeIsAnotherKey(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.ProductOf(t, "acme", "TEA-001", 1999, 10)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	orders := map[string]bool{first.Text("id"): true}
	for _, other := range []*testkit.Caller{s.As(t, "bob"), s.AsOf(t, "alice", "acme", testkit.AllScopes)} {
		a := place(other, "k", tea())
		requirePlaced(t, a)
		orders[a.Text("id")] = true
		requireReplay(t, a, place(other, "k", tea()))
	}
	require.Len(t, orders, 3, "different orders")

	adjusted := post(alice, "/v1/products/TEA-001/stock-adjustments", "k", `{"delta":5}`)
	require.Equal(t, http.StatusOK, adjusted.Status, string(adjusted.Body))
	require.False(t, replayed(adjusted))
	s.Stocked(t, "default", "TEA-001", 5)
	requireReplay(t, first, place(alice, "k", tea()))
	require.Equal(t, 4, s.Count(t, "idempotency_keys"))
}

// Ensure scopes cannot be made to meet by what is put into them.
//
// Standard: litespec/ext/concurrency#scope-client-keys
func TestIdempotencyScopesAreNotJoinedFromTheirParts(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	for _, c := range []struct{ actor, key string }{{"a", "b:c"}, {"a:b", "c"}, {"a b", "c"}, {"A", "b:c"}, {"a", "B:c"}} {
		requirePlaced(t, place(s.As(t, c.actor), c.key, testkit.OrderBody("pm_card_visa", "TEA-001", "1")))
	}
	requireStored(t, s, 5)
}

// Ensure one key means one order: the same key on another order is a reuse, since the route is part of the request.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
// Standard: litespec/ext/concurrency#reject-conflicting-key-reuse
func TestIdempotencyTheSameKeyOnAnotherOrderIsAReuse(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.StartWorker(t)
	alice := s.As(t, "alice")
	one, two := alice.Place("one", tea()), alice.Place("two", tea())
	for _, order := range []string{one, two} {
		alice.PaymentStatus(order, "succeeded")
	}
	for _, c := range []struct{ path, body string }{ // in this order: a cancellation gives all of the money back
		{"/refunds", `{"amount":{"amount":100,"currency":"EUR"}}`},
		{"/cancellation", `{}`},
	} {
		send := func(order string) testkit.Answer {
			tag := alice.Get("/v1/orders/" + order).Header.Get("ETag")
			return post(alice, "/v1/orders/"+order+c.path, "k", c.body, "If-Match", tag)
		}
		first := send(one)
		require.Less(t, first.Status, 300, string(first.Body))
		requireRefused(t, send(two), http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	require.Equal(t, "open", alice.Get("/v1/orders/"+two).Text("status"))
	require.Zero(t, s.Count(t, "refunds WHERE order_id = $1", two))
}

// Ensure the fingerprint sees what a request means and not how it is written.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
// Standard: litespec/ext/concurrency#reject-conflicting-key-reuse
func TestIdempotencyAReusedKeyIsRefusedAndARewrittenRequestIsNot(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.Product(t, "MUG-001", 1250, 10)
	alice := s.As(t, "alice")
	body := testkit.OrderBody("pm_card_visa", "TEA-001", "2", "MUG-001", "1")
	first := place(alice, "k", body)
	requirePlaced(t, first)

	address := testkit.Address
	for name, same := range map[string]string{
		"the same":          body,
		"white space":       strings.NewReplacer(",", " ,\n\t", ":", " : ").Replace(body),
		"escaped":           strings.ReplaceAll(body, "Alice", `\u0041lice`),
		"reordered members": `{"payment_method":"pm_card_visa","shipping_address":` + address + `,"lines":[{"quantity":2,"sku":"TEA-001"},{"quantity":1,"sku":"MUG-001"}],"currency":"EUR"}`,
		"empty optional":    strings.Replace(body, `"city"`, `"line2":"","city"`, 1),
	} {
		t.Log(name)
		requireReplay(t, first, place(alice, "k", same))
	}
	for name, other := range map[string]string{
		"another quantity": testkit.OrderBody("pm_card_visa", "TEA-001", "3", "MUG-001", "1"),
		"reordered lines":  testkit.OrderBody("pm_card_visa", "MUG-001", "1", "TEA-001", "2"),
		"split lines":      testkit.OrderBody("pm_card_visa", "TEA-001", "1", "TEA-001", "1", "MUG-001", "1"),
		"another card":     testkit.OrderBody("pm_card_mastercard", "TEA-001", "2", "MUG-001", "1"),
		"another address":  strings.Replace(body, "Berlin", "Bremen", 1),
		"another name":     strings.Replace(body, "Alice", "alice", 1),
	} {
		t.Log(name)
		requireRefused(t, place(alice, "k", other), http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	requireReplay(t, first, place(alice, "k", body))
	requireStored(t, s, 1)
}

// Ensure the fingerprint knows neither the key nor the token, and does know the actor and the tenant.
//
// Standard: litespec/ext/concurrency#canonicalize-request-fingerprints
// Standard: litespec/ext/concurrency#protect-fingerprint-source-data
func TestIdempotencyFingerprintsLeaveKeyAndTokenOut(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.ProductOf(t, "acme", "TEA-001", 1999, 10)
	place(s.As(t, "alice"), "one", tea())
	place(s.As(t, "alice"), "two", tea()) // a token of its own, and a key of its own
	require.Equal(t, 1, s.Count(t, "(SELECT DISTINCT fingerprint FROM idempotency_keys) f"))
	place(s.As(t, "bob"), "one", tea())
	place(s.AsOf(t, "alice", "acme", testkit.AllScopes), "one", tea())
	require.Equal(t, 3, s.Count(t, "(SELECT DISTINCT fingerprint FROM idempotency_keys) f"))
	requireStored(t, s, 4)
}

// Ensure keys are taken as sent within their bounds and refused outside of them, before anything is claimed.
//
// Standard: litespec/ext/concurrency#use-the-standard-idempotency-header
func TestIdempotencyKeysHaveBounds(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	one := testkit.OrderBody("pm_card_visa", "TEA-001", "1")
	send := func(headers ...string) testkit.Answer {
		return alice.Do(http.MethodPost, "/v1/orders", one, headers...)
	}

	longest := strings.Repeat("k", 255)
	good := []string{"x", "X", "!", "~", `"quoted"`, "a,b", "%00", longest, longest[1:] + "x"}
	for _, key := range good {
		t.Log(key)
		requirePlaced(t, send("Idempotency-Key", key))
		require.Equal(t, 1, s.Count(t, `idempotency_keys WHERE key = $1`, key), "kept as sent")
	}
	for _, key := range []string{"", longest + "k", "a b", "a\tb", "caf\u00e9", "\xff", "\u00a0"} {
		t.Logf("%q", key)
		requireRefused(t, send("Idempotency-Key", key), http.StatusBadRequest, "invalid_idempotency_key")
	}
	requireRefused(t, send(), http.StatusBadRequest, "idempotency_key_required")
	requireRefused(t, send("X-Idempotency-Key", "k"), http.StatusBadRequest, "idempotency_key_required")
	requireRefused(t, send("Idempotency-Key", "k", "Idempotency-Key", "k"), http.StatusBadRequest, "invalid_idempotency_key")
	requireStored(t, s, len(good))
}
