package stripegateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/stripegateway"
)

// request is what a provider saw of a call, and what it answered.
type request struct {
	method, path, key string
	form              url.Values // of the body or of the query
	status            int
}

// provider is a local HTTP server in the provider's place. It remembers what it was asked.
type provider struct {
	url     string
	handler http.HandlerFunc

	mu   sync.Mutex
	seen []request
}

func startProvider(t *testing.T, handler http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{handler: handler}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	if r.Method == http.MethodGet {
		form = r.URL.Query()
	}
	kept := &keepStatus{ResponseWriter: w, status: http.StatusOK}
	defer func() { // also where the handler cuts the connection
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), form, kept.status})
	}()
	p.handler(kept, r)
}

// requests is what the provider was asked so far.
func (p *provider) requests() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.seen...)
}

// gateway is the code under test, with a timeout for the provider's calls.
func (p *provider) gateway(timeout time.Duration) *stripegateway.Gateway {
	return stripegateway.New(stripegateway.Config{APIKey: "sk_test_123", BaseURL: p.url, Timeout: timeout})
}

type keepStatus struct {
	http.ResponseWriter
	status int
}

func (k *keepStatus) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

var (
	ref    = app.OrderRef{Tenant: "default", OrderID: uuid.MustParse("01980000-0000-7000-8000-000000000001")}
	charge = app.ChargeRequest{
		Ref: ref, Amount: domain.Money{Amount: 3998, Currency: "EUR"}, PaymentMethod: "pm_card_visa",
	}
	refund = app.RefundRequest{
		Ref: ref, RefundID: uuid.MustParse("01980000-0000-7000-8000-000000000002"), ChargeID: "pi_123",
		Amount: domain.Money{Amount: 1000, Currency: "EUR"},
	}
)

// answers is a provider that gives one answer to everything.
func answers(t *testing.T, status int, body string) *provider {
	t.Helper()
	return startProvider(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, status, body) })
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func requireUnknown(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "4242", "the provider's text can name a card")
}
