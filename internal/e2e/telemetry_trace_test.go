package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/dev/testkit"
)

// recordedHeaders stands before the provider and notes a header of every POST.
type recordedHeaders struct {
	mu   sync.Mutex
	seen []string
}

func (r *recordedHeaders) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.seen...)
}

// recordAtProvider makes the next worker reach the provider through a proxy that notes the header.
func recordAtProvider(t *testing.T, s *testkit.Service, header string) *recordedHeaders {
	t.Helper()
	target, err := url.Parse(s.Env["STRIPE_BASE_URL"])
	require.NoError(t, err)
	recorded := &recordedHeaders{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			recorded.mu.Lock()
			recorded.seen = append(recorded.seen, r.Header.Get(header))
			recorded.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.Env["STRIPE_BASE_URL"] = server.URL
	return recorded
}

// spansOf keeps the spans of a trace.
func spansOf(s *testkit.Service, traceID string) (spans []sdk.ReadOnlySpan) {
	for _, span := range s.Spans.Ended() {
		if span.SpanContext().TraceID().String() == traceID {
			spans = append(spans, span)
		}
	}
	return spans
}

// ancestry is the names from a span up to the root of what this service did.
func ancestry(spans []sdk.ReadOnlySpan, of sdk.ReadOnlySpan) (names []string) {
	byID := map[trace.SpanID]sdk.ReadOnlySpan{}
	for _, span := range spans {
		byID[span.SpanContext().SpanID()] = span
	}
	for span := of; span != nil; span = byID[span.Parent().SpanID()] {
		names = append(names, span.Name())
	}
	return names
}

// foreign is a caller's own trace.
const (
	foreign       = "0af7651916cd43dd8448eb211c80319c"
	foreignParent = "00-" + foreign + "-b7ad6b7169203331-01"
)

// Ensure a caller's trace context neither names nor continues what the service does, unless the caller is a trusted peer:
// an original and its replay have ids of their own, and the request's span links to the caller's.
func TestTelemetryForeignTracesAreLinked(t *testing.T) {
	t.Parallel()
	s := openShop(t, "TRACE_TRUSTED_PEERS", "10.0.0.0/8, fd00::/8")
	place := func() testkit.Answer {
		return post(s.alice, "/v1/orders", "k", testkit.OrderBody("pm_card_visa", shopSKU, "2"), "Traceparent", foreignParent)
	}
	placed, replayed := place(), place()
	requirePlaced(t, placed)
	requireReplay(t, placed, replayed)
	refused := s.alice.Get("/v1/orders/x", "Traceparent", "00-"+foreign+"-b7ad6b7169203331-00")
	s.StopAPI(t) // so that all spans have ended
	ids := map[string]bool{foreign: true}
	for _, a := range []testkit.Answer{placed, replayed, refused} {
		id := a.Header.Get("Request-Id")
		require.False(t, ids[id], "the id %s is not of this exchange alone", id)
		ids[id] = true
		var links []string
		for _, span := range spansOf(s.Service, id) {
			for _, link := range span.Links() {
				links = append(links, link.SpanContext.TraceID().String())
			}
		}
		require.Equal(t, []string{foreign}, links)
	}
	require.Empty(t, spansOf(s.Service, foreign))
}

// Ensure one trace tells the story of an order, from the span of a trusted peer over the request, its transaction and the
// job to the calls of the provider, which gets the trace too.
func TestTelemetryOneTraceForAnOrder(t *testing.T) {
	t.Parallel()
	const traceID = foreign
	s := openShopWithoutEvents(t, "TRACE_TRUSTED_PEERS", "127.0.0.0/8,::1/128")
	recorded := recordAtProvider(t, s.Service, "Traceparent")
	placed := post(s.alice, "/v1/orders", "k", testkit.OrderBody("pm_card_visa", shopSKU, "2"),
		"Traceparent", foreignParent)
	requirePlaced(t, placed)
	require.Equal(t, traceID, placed.Header.Get("Request-Id"))
	s.StartWorker(t)
	s.alice.PaymentStatus(placed.Text("id"), "succeeded")
	s.StopWorker(t)
	s.StopAPI(t) // so that all spans have ended

	spans := spansOf(s.Service, traceID)
	var calls []string
	var queries int
	for _, span := range spans {
		switch {
		case span.SpanKind() == trace.SpanKindClient && strings.HasPrefix(span.Name(), "HTTP "):
			calls = append(calls, "00-"+traceID+"-"+span.SpanContext().SpanID().String()+"-01")
			require.Equal(t, []string{"HTTP POST", "river.work/charge-order", "transaction", "place-order"},
				ancestry(spans, span))
		case span.SpanKind() == trace.SpanKindClient:
			queries++
		}
	}
	require.Len(t, calls, 2, "calls of the provider in the trace: the intent is created and confirmed")
	require.ElementsMatch(t, calls, recorded.all())
	require.Greater(t, queries, 10, "statements in the trace")
	require.Equal(t, 3, countNamed(spans, "transaction"), "of the request, the intent's id and the outcome")
}

func countNamed(spans []sdk.ReadOnlySpan, name string) (n int) {
	for _, span := range spans {
		if span.Name() == name {
			n++
		}
	}
	return n
}
