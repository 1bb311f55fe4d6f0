package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a replay is the original answer, byte for byte, although the order has changed since: it was shipped.
//
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyAReplayIsTheOriginalAfterTheOrderWasShipped(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.StartWorker(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	order := "/v1/orders/" + first.Text("id")
	require.Equal(t, order, first.Header.Get("Location"))
	require.Equal(t, alice.Get(order).Header.Get("ETag"), first.Header.Get("ETag"))
	alice.PaymentStatus(first.Text("id"), "succeeded")

	shipped := alice.Do(http.MethodPost, order+"/shipment", `{"carrier":"DHL","tracking_number":"1"}`,
		"If-Match", first.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, shipped.Status, string(shipped.Body))
	require.NotEqual(t, first.Header.Get("ETag"), alice.Get(order).Header.Get("ETag"))
	again := place(alice, "k", tea())
	requireReplay(t, first, again)
	require.Equal(t, "open", again.Text("status"), "what was accepted then, not what is now")
}

// Ensure the same after a cancellation, whose own retry replays too although its version is stale by then.
//
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyAReplayIsTheOriginalAfterTheOrderWasCancelled(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	cancel := func(tag string) testkit.Answer {
		return post(alice, "/v1/orders/"+first.Text("id")+"/cancellation", "c", `{"reason":"mistake"}`, "If-Match", tag)
	}
	cancelled := cancel(first.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, cancelled.Status, string(cancelled.Body))
	requireReplay(t, first, place(alice, "k", tea()))
	requireReplay(t, cancelled, cancel(first.Header.Get("ETag")))
	requireRefused(t, cancel(cancelled.Header.Get("ETag")), http.StatusUnprocessableEntity, "idempotency_key_reused")
}

// Ensure a replay has a date and a request id of its own, and that both answers have the same headers otherwise.
//
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
func TestIdempotencyAReplayIsAnExchangeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	var again testkit.Answer
	testkit.Eventually(t, "a replay of another second", func() bool {
		again = place(alice, "k", tea())
		return again.Header.Get("Date") != first.Header.Get("Date")
	})
	requireReplay(t, first, again)
	require.NotEmpty(t, first.Header.Get("Request-Id"))
	require.NotEqual(t, first.Header.Get("Request-Id"), again.Header.Get("Request-Id"))
	for _, a := range []testkit.Answer{first, again} {
		for _, own := range []string{"Date", "Request-Id", "Idempotent-Replayed"} {
			a.Header.Del(own)
		}
	}
	require.Equal(t, first.Header, again.Header)
}

// Ensure only what a retry needs is stored: status, declared headers, a body without personal data, a hash of the
// request, and times. No header of the exchange, no token, nothing that the customer typed.
//
// Standard: litespec/ext/concurrency#restrict-replay-data
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
// Standard: litespec/ext/concurrency#protect-fingerprint-source-data
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
func TestIdempotencyOnlyWhatARetryNeedsIsStored(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := alice.Do(http.MethodPost, "/v1/orders", tea(), "Idempotency-Key", "k", "Cookie", "session=secret")
	requirePlaced(t, first)

	var row struct {
		state           string
		status          int
		headers, body   []byte
		hash, kept      int
		whole           string
		createdTogether bool
	}
	require.NoError(t, s.DB.QueryRow(t.Context(), `
		SELECT k.state, k.response_status, k.response_headers, k.response_body, length(k.fingerprint),
			extract(epoch FROM k.expires_at - k.created_at)::int, k::text || convert_from(k.response_headers, 'UTF8') ||
			convert_from(k.response_body, 'UTF8'), k.xmin = o.xmin AND o.xmin = p.xmin
		FROM idempotency_keys k, orders o, payments p`).Scan(&row.state, &row.status, &row.headers, &row.body, &row.hash,
		&row.kept, &row.whole, &row.createdTogether))
	require.Equal(t, "completed", row.state)
	require.Equal(t, first.Status, row.status)
	require.Equal(t, first.Body, row.body)
	require.Equal(t, 32, row.hash)
	require.Equal(t, 72*3600, row.kept)
	require.True(t, row.createdTogether, "the key, the order and the payment were written by one transaction")

	var headers map[string]string
	require.NoError(t, json.Unmarshal(row.headers, &headers))
	require.Equal(t, map[string]string{
		"content_type": "application/json", "location": first.Header.Get("Location"), "etag": first.Header.Get("ETag"),
	}, headers)
	for _, private := range []string{"Alice", "Street", "Berlin", "10115", "pm_card", "secret", alice.Token, "Bearer"} {
		require.NotContains(t, row.whole, private)
	}
	for _, name := range []string{"cookie", "cache-control", "vary", "expires", "age", "connection", "keep-alive", "date"} {
		require.NotContains(t, strings.ToLower(string(row.headers)), name)
	}
	for _, never := range []string{"Set-Cookie", "Vary", "Expires", "Age"} {
		require.Empty(t, first.Header.Values(never))
	}
}

// Ensure a retry is authenticated, authorized and validated as if it were the first: without its token or scope it gets
// no replay, and the key is still there for the next good token.
//
// Standard: litespec/ext/concurrency#run-idempotency-in-the-pipeline
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
func TestIdempotencyARetryIsAuthorizedAnew(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	first := place(alice, "k", tea())
	requirePlaced(t, first)
	withdrawn := s.AsOf(t, "alice", "default", "orders:read catalog:read")
	requireRefused(t, place(withdrawn, "k", tea()), http.StatusForbidden, "forbidden")
	requireRefused(t, place(expired(t, s, "alice"), "k", tea()), http.StatusUnauthorized, "unauthenticated")
	requireRefused(t, place(alice, "k", noCurrency()), http.StatusBadRequest, "validation_failed")
	requireReplay(t, first, place(s.As(t, "alice"), "k", tea())) // a fresh token of the same actor
	requireStored(t, s, 1)
}

// Ensure an order of another customer, or one that does not exist, neither spends a key nor replays a result.
//
// Standard: litespec/ext/concurrency#run-idempotency-in-the-pipeline
func TestIdempotencyAnothersOrderSpendsNoKey(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice, bob := s.As(t, "alice"), s.As(t, "bob")
	order := place(alice, "k", tea())
	requirePlaced(t, order)
	cancel := func(c *testkit.Caller, id string, seen testkit.Answer) testkit.Answer {
		return post(c, "/v1/orders/"+id+"/cancellation", "c", `{}`, "If-Match", seen.Header.Get("ETag"))
	}
	requireRefused(t, cancel(bob, order.Text("id"), order), http.StatusNotFound, "order_not_found")
	requireRefused(t, cancel(bob, "01890000-0000-7000-8000-000000000000", order), http.StatusNotFound, "order_not_found")
	requireStored(t, s, 1)

	bobs := place(bob, "k", tea()) // the key that was refused works for what is bob's
	requirePlaced(t, bobs)
	requireRefused(t, cancel(bob, bobs.Text("id"), order), http.StatusConflict, "version_conflict") // a tag of another order
	cancelled := cancel(bob, bobs.Text("id"), bobs)
	require.Equal(t, http.StatusOK, cancelled.Status, string(cancelled.Body))
	require.False(t, replayed(cancelled))
	// Another's order answers 404, not 422, even where the key has been spent.
	requireRefused(t, cancel(bob, order.Text("id"), order), http.StatusNotFound, "order_not_found")
}

// Ensure the owner is checked before the replay: an order that is no longer the caller's answers 404, not the stored
// result.
//
// Standard: litespec/ext/concurrency#run-idempotency-in-the-pipeline
func TestIdempotencyAReplayIsForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	order := place(alice, "k", tea())
	requirePlaced(t, order)
	cancel := func() testkit.Answer {
		return post(alice, "/v1/orders/"+order.Text("id")+"/cancellation", "c", `{}`, "If-Match", order.Header.Get("ETag"))
	}
	cancelled := cancel()
	require.Equal(t, http.StatusOK, cancelled.Status, string(cancelled.Body))
	s.Begin(t).Exec(`UPDATE orders SET customer_id = 'bob'`).Commit()
	requireRefused(t, cancel(), http.StatusNotFound, "order_not_found")
	s.Begin(t).Exec(`UPDATE orders SET customer_id = 'alice'`).Commit()
	requireReplay(t, cancelled, cancel())
}
