package docs_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/testkit"
)

// Ensure what the store holds of every keyed operation is what its record lists: the status, those headers, and no
// other; and that a replay answers with them, with no header that is neither listed nor made for the exchange.
//
// Standard: litespec/ext/concurrency#declare-replayed-transport-outcomes
func TestStoredAnswersAreAsRecorded(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	s.Product(t, "TEA-001", 1999, 10)
	s.StartWorker(t)
	alice := s.As(t, "alice")
	tried := map[string]bool{}
	try := func(operation, path, body string, headers ...string) testkit.Answer {
		tried[operation] = true
		headers = append(headers, "Idempotency-Key", "the-key-of-"+operation)
		first := alice.Do(http.MethodPost, path, body, headers...)
		require.Less(t, first.Status, 300, "%s: %s", operation, first.Body)
		again := alice.Do(http.MethodPost, path, body, headers...)
		requireReplay(t, useCases(t)[operation], s, first, again)
		return first
	}
	order := "/v1/orders/" + try("place-order", "/v1/orders", testkit.OrderBody("pm_card_visa", "TEA-001", "2")).Text("id")
	alice.PaymentStatus(strings.TrimPrefix(order, "/v1/orders/"), "succeeded")
	try("refund-order", order+"/refunds", `{"amount":{"amount":1,"currency":"EUR"}}`)
	try("cancel-order", order+"/cancellation", `{}`, "If-Match", alice.Get(order).Header.Get("ETag"))
	try("adjust-stock", "/v1/products/TEA-001/stock-adjustments", `{"delta":1}`)
	s.Stocked(t, "default", "TEA-001", 1)
	for name, u := range useCases(t) {
		require.Equal(t, u.keyed(), tried[name], name)
	}
}

func requireReplay(t testing.TB, u useCase, s *testkit.Service, first, again testkit.Answer) {
	t.Helper()
	i := slices.IndexFunc(u.Idempotency.Stored, func(a storedAnswer) bool { return a.Status == first.Status })
	require.NotEqual(t, -1, i, "%s stores %d", u.Operation, first.Status)
	listed := slices.Sorted(slices.Values(u.Idempotency.Stored[i].Headers))

	status, headers, body := stored(t, s, u.Operation)
	require.Equal(t, first.Status, status)
	require.Equal(t, first.Body, body)
	require.Equal(t, listed, headers, "%s: the headers in the store", u.Operation)

	require.Equal(t, first.Status, again.Status)
	require.Equal(t, first.Body, again.Body)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), u.Operation)
	for _, name := range listed {
		require.Equal(t, first.Header.Values(name), again.Header.Values(name), "%s: %s", u.Operation, name)
	}
	own := []string{"Content-Length", "Date", "Idempotent-Replayed"}
	for name := range again.Header {
		require.Contains(t, append(own, listed...), name, "%s: a header of the replay", u.Operation)
	}
}

// stored reads what the store holds under the only key of an operation; the headers by their names on the wire.
func stored(t testing.TB, s *testkit.Service, operation string) (status int, headers []string, body []byte) {
	t.Helper()
	var raw []byte
	require.NoError(t, s.DB.QueryRow(t.Context(), `
		SELECT response_status, response_headers, response_body FROM idempotency_keys WHERE operation = $1`,
		operation).Scan(&status, &raw, &body))
	var byMember map[string]string
	require.NoError(t, json.Unmarshal(raw, &byMember))
	for member := range byMember {
		name, known := map[string]string{"content_type": "Content-Type", "etag": "ETag", "location": "Location"}[member]
		require.True(t, known, "%s stores %s", operation, member)
		headers = append(headers, name)
	}
	slices.Sort(headers)
	return status, headers, body
}
