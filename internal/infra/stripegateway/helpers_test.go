package stripegateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
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
	p.mu.Lock()
	seen := len(p.seen)
	p.seen = append(p.seen, request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), form, http.StatusOK})
	p.mu.Unlock()
	kept := &keepStatus{ResponseWriter: w, keep: func(status int) { // before the caller can see the answer
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen[seen].status = status
	}}
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
	keep func(status int)
}

func (k *keepStatus) WriteHeader(status int) {
	k.keep(status)
	k.ResponseWriter.WriteHeader(status)
}

var (
	ref    = app.OrderRef{Tenant: "default", OrderID: uuid.MustParse("01980000-0000-7000-8000-000000000001")}
	charge = app.IntentRequest{
		Ref: ref, IntentID: "pi_1", Amount: domain.Money{Amount: 3998, Currency: "EUR"}, PaymentMethod: "pm_card_visa",
		Generation: 1,
	}
	refund = app.RefundRequest{
		Ref: ref, RefundID: uuid.MustParse("01980000-0000-7000-8000-000000000002"), IntentID: "pi_1",
		Amount: domain.Money{Amount: 1000, Currency: "EUR"}, Generation: 1,
	}
	window = app.ProviderQuery{From: time.Unix(1700000000, 0), Limit: 100}
)

// The names of the calls, those with an idempotency key first.
var (
	keyedCalls = []string{"create", "confirm", "cancel", "refund"}
	reads      = []string{"retrieve", "search", "list of refunds", "intents", "refunds", "events"}
)

// call makes the call of that name.
func call(ctx context.Context, p app.PaymentProvider, name string) error {
	calls := map[string]func() error{
		"create":          func() error { _, err := p.CreateIntent(ctx, charge); return err },
		"confirm":         func() error { _, err := p.ConfirmIntent(ctx, charge); return err },
		"cancel":          func() error { _, err := p.CancelIntent(ctx, charge); return err },
		"retrieve":        func() error { _, err := p.RetrieveIntent(ctx, charge); return err },
		"search":          func() error { _, err := p.SearchIntents(ctx, charge); return err },
		"refund":          func() error { _, err := p.CreateRefund(ctx, refund); return err },
		"list of refunds": func() error { _, err := p.ListRefunds(ctx, charge); return err },
		"intents":         func() error { _, err := p.List(ctx, windowOf(app.StreamIntents)); return err },
		"refunds":         func() error { _, err := p.List(ctx, windowOf(app.StreamRefunds)); return err },
		"events":          func() error { _, err := p.List(ctx, windowOf(app.StreamEvents)); return err },
	}
	return calls[name]()
}

func allCalls() []string { return append(slices.Clone(keyedCalls), reads...) }

func windowOf(s app.ProviderStream) app.ProviderQuery {
	q := window
	q.Stream = s
	return q
}

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

// object is an object of Stripe's with some members replaced; an empty one is left out.
func object(members map[string]string, replaced ...string) string {
	members = maps.Clone(members)
	for i := 0; i < len(replaced); i += 2 {
		members[replaced[i]] = replaced[i+1]
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] != "" {
			out = append(out, fmt.Sprintf("%q:%s", name, members[name]))
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

// intentJSON is the intent that charge asks for.
func intentJSON(replaced ...string) string {
	return object(map[string]string{
		"id": `"pi_1"`, "object": `"payment_intent"`, "status": `"succeeded"`, "amount": "3998", "currency": `"eur"`,
		"metadata":      fmt.Sprintf(`{"tenant_id":"default","order_id":%q}`, ref.OrderID),
		"client_secret": `"pi_1_secret_XYZ"`,
	}, replaced...)
}

// refundJSON is the refund that refund asks for.
func refundJSON(replaced ...string) string {
	return object(map[string]string{
		"id": `"re_1"`, "object": `"refund"`, "status": `"succeeded"`, "amount": "1000", "currency": `"eur"`,
		"payment_intent": `"pi_1"`,
		"metadata":       fmt.Sprintf(`{"tenant_id":"default","order_id":%q,"refund_id":%q}`, ref.OrderID, refund.RefundID),
	}, replaced...)
}

func list(items ...string) string {
	return `{"object":"list","has_more":false,"data":[` + strings.Join(items, ",") + `]}`
}

// requireSafe fails if an error quotes an answer.
func requireSafe(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Less(t, len(err.Error()), 400)
	for _, secret := range []string{"4242", "secret", "Luck"} {
		require.NotContains(t, err.Error(), secret)
	}
}
func form(metadata, parameters map[string]string) url.Values {
	f := url.Values{}
	for name, value := range metadata {
		f.Set("metadata["+name+"]", value)
	}
	for name, value := range parameters {
		f.Set(name, value)
	}
	return f
}
