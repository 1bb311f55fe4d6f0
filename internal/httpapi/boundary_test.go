package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/httpapi"
)

// everyScope is every scope there is.
const everyScope = testkit.AllScopes + " orders:admin"

// tokens is an authenticator: the token is the scopes, except for two that end otherwise.
type tokens struct{}

const (
	tokenOfNobody = "nobody"
	tokenTooEarly = "issuer-does-not-answer"
)

func (tokens) Authenticate(_ context.Context, token string) (app.Actor, error) {
	switch token {
	case tokenOfNobody:
		return app.Actor{}, httpapi.ErrUnauthenticated
	case tokenTooEarly:
		return app.Actor{}, errors.Join(app.ErrTryAgain, errors.New("dial tcp 127.0.0.1:1: connection refused"))
	}
	return app.Actor{Tenant: "default", ID: "alice", Scopes: strings.Split(token, ",")}, nil
}

// outcomes is an observer: the operation and the code of each request.
type outcomes chan string

func (o outcomes) Request(_ context.Context, operation, code string, _ bool, _ time.Duration) {
	select {
	case o <- operation + " " + code:
	default: // a test that does not look
	}
}

// next is the next outcome, within a bound.
func (o outcomes) next(t testing.TB) string {
	t.Helper()
	select {
	case outcome := <-o:
		return outcome
	case <-time.After(testkit.Wait):
		require.Fail(t, "no request was observed")
		return ""
	}
}

// boundary is the boundary alone: there is no store behind it, so a request that gets through to one panics.
type boundary struct {
	t        testing.TB
	url      string
	log      *bytes.Buffer
	outcomes outcomes
}

func start(t testing.TB) boundary { return startWith(t, tokens{}) }

func startWith(t testing.TB, auth httpapi.Authenticator, configure ...func(*http.Server)) boundary {
	t.Helper()
	b := boundary{t: t, log: new(bytes.Buffer), outcomes: make(outcomes, 16)}
	service := app.New(nil, nil, nil, app.Settings{}, nil)
	handler, err := httpapi.New(service, auth, signatures{}, b.outcomes, slog.New(slog.NewJSONHandler(b.log, nil)))
	require.NoError(t, err)
	traced := otelhttp.NewHandler(handler, "api", otelhttp.WithTracerProvider(sdktrace.NewTracerProvider()))
	server := httptest.NewUnstartedServer(traced)
	for _, c := range configure {
		c(server.Config)
	}
	server.Start()
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// ask is one request. What is not set is what a good client would send.
type ask struct {
	method, path string
	body         string
	reader       io.Reader // instead of body, without a length
	header       map[string][]string
}

// send sends a request with every scope and holds the answer to the contract.
func (b boundary) send(a ask) testkit.Answer {
	b.t.Helper()
	body := a.reader
	if body == nil {
		body = strings.NewReader(a.body)
	}
	r, err := http.NewRequest(a.method, b.url+a.path, body)
	require.NoError(b.t, err)
	r.Header.Set("Authorization", "Bearer "+strings.ReplaceAll(everyScope, " ", ","))
	if a.body != "" || a.reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, lines := range a.header {
		r.Header[http.CanonicalHeaderKey(name)] = lines
	}
	client := &http.Client{Timeout: testkit.Wait, Transport: testkit.Checked(b.t, http.DefaultTransport)}
	response, err := client.Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return testkit.Answer{Status: response.StatusCode, Header: response.Header, Body: raw}
}

// refused sends a request that must be refused with a status and a code.
func (b boundary) refused(name string, a ask, status int, code string) testkit.Answer {
	b.t.Helper()
	got := b.send(a)
	require.Equal(b.t, status, got.Status, "%s: %s", name, got.Body)
	require.Equal(b.t, code, got.Code(), name)
	return got
}

// fields is the invalid fields of a problem, each with its code.
func fields(t testing.TB, a testkit.Answer) map[string]string {
	t.Helper()
	var p struct {
		Errors []struct{ Field, Code string }
	}
	require.NoError(t, json.Unmarshal(a.Body, &p))
	all := map[string]string{}
	for _, e := range p.Errors {
		all[e.Field] = e.Code
	}
	return all
}

func keyed() map[string][]string { return map[string][]string{"Idempotency-Key": {"k1"}} }

const (
	anOrder  = "/v1/orders/019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42"
	aVersion = `"uhXBLtDfl2YgE7IxbCnfwg"` // of anOrder
)

// operation is one operation of the contract as a good client calls it.
type operation struct {
	method, path, scope string
	body                string
	header              map[string][]string
}

func operations() []operation {
	match := map[string][]string{"If-Match": {aVersion}}
	both := map[string][]string{"If-Match": {aVersion}, "Idempotency-Key": {"k1"}}
	return []operation{
		{"POST", "/v1/orders", "orders:write", testkit.OrderBody("pm_card_visa", "TEA-001", "1"), keyed()},
		{"GET", "/v1/orders", "orders:read", "", nil},
		{"HEAD", "/v1/orders", "orders:read", "", nil},
		{"GET", anOrder, "orders:read", "", nil},
		{"HEAD", anOrder, "orders:read", "", nil},
		{"GET", anOrder + "/payment", "orders:read", "", nil},
		{"HEAD", anOrder + "/payment", "orders:read", "", nil},
		{"PUT", anOrder + "/shipping-address", "orders:write", testkit.Address, match},
		{"POST", anOrder + "/cancellation", "orders:write", `{}`, both},
		{"POST", anOrder + "/shipment", "orders:fulfil", `{"carrier":"DHL","tracking_number":"1"}`, match},
		{"POST", anOrder + "/refunds", "orders:refund", `{"amount":{"amount":1,"currency":"EUR"}}`, keyed()},
		{"GET", "/v1/products", "catalog:read", "", nil},
		{"HEAD", "/v1/products", "catalog:read", "", nil},
		{"GET", "/v1/products/TEA-001", "catalog:read", "", nil},
		{"HEAD", "/v1/products/TEA-001", "catalog:read", "", nil},
		{"PUT", "/v1/products/TEA-001", "catalog:write", `{"name":"Tea","price":{"amount":1,"currency":"EUR"},"active":true}`, match},
		{"GET", "/v1/products/TEA-001/stock", "catalog:read", "", nil},
		{"HEAD", "/v1/products/TEA-001/stock", "catalog:read", "", nil},
		{"POST", "/v1/products/TEA-001/stock-adjustments", "catalog:write", `{"delta":1}`, keyed()},
	}
}
