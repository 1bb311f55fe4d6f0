package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/httpapi"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/telemetry"
)

// Ensure a refused attempt stores nothing and leaves the key free, whatever refused it and however far it came: the
// same key, with a good request, then works as if nothing had been.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
// Standard: litespec/ext/concurrency#run-idempotency-in-the-pipeline
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
func TestIdempotencyARefusedAttemptLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.Product(t, "OLD-001", 100, 10)
	s.Begin(t).Exec(`UPDATE products SET active = false WHERE sku = 'OLD-001'`).Commit()
	alice := s.As(t, "alice")
	stranger := s.As(t, "alice")
	stranger.Token = "not a token"
	dollars := strings.Replace(tea(), "EUR", "USD", 1)
	for _, c := range []struct {
		caller *testkit.Caller
		body   string
		status int
		code   string
	}{
		{alice, testkit.OrderBody("pm_card_visa", "TEA-001", "0"), 400, "validation_failed"},
		{alice, strings.Replace(tea(), `"DE"`, `"de"`, 1), 400, "validation_failed"},
		{alice, strings.Replace(tea(), "Alice Ames", " ", 1), 400, "validation_failed"},
		{alice, noCurrency(), 400, "validation_failed"},
		{alice, tea() + "{}", 400, "malformed_request"},
		{alice, strings.Replace(tea(), "Alice", `\u0000`, 1), 400, "malformed_request"},
		{alice, `{"currency":"EUR","currency":"EUR"` + tea()[1:], 400, "malformed_request"},
		{stranger, tea(), 401, "unauthenticated"},
		{expired(t, s, "alice"), tea(), 401, "unauthenticated"},
		{s.AsOf(t, "alice", "default", "orders:read"), tea(), 403, "forbidden"},
		{alice, testkit.OrderBody("pm_card_visa", "TEA-001", "11"), 409, "insufficient_stock"},
		{alice, testkit.OrderBody("pm_card_visa", "OLD-001", "1"), 409, "product_unavailable"},
		{alice, testkit.OrderBody("pm_card_visa", "NONE-001", "1"), 409, "product_unavailable"},
		{alice, dollars, 409, "currency_mismatch"},
		{alice, strings.Replace(tea(), "Alice", strings.Repeat("A", 70_000), 1), 413, "body_too_large"},
	} {
		t.Log(c.status, c.code)
		requireRefused(t, place(c.caller, "k", c.body), c.status, c.code)
		requireStored(t, s, 0)
	}
	requireRefused(t, post(alice, "/v1/orders", "k", "", "Content-Type", "text/plain"), 415, "unsupported_media_type")
	requireUntouched(t, s, alice)
}

// noCurrency is an order that the contract lets pass and the use case itself refuses: ZZZ is in no list of currencies.
func noCurrency() string { return strings.Replace(tea(), "EUR", "ZZZ", 1) }

// requireUntouched checks that nothing was left and that the key places the order as if it were new.
func requireUntouched(t *testing.T, s *testkit.Service, c *testkit.Caller) {
	t.Helper()
	requireStored(t, s, 0)
	require.EqualValues(t, 10, s.OnHand(t, "TEA-001"))
	first := place(c, "k", tea())
	requirePlaced(t, first)
	requireReplay(t, first, place(c, "k", tea()))
	requireStored(t, s, 1)
}

// Ensure the same of what is refused for its target or its version.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyARefusedTargetLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	order := place(alice, "placing", tea())
	requirePlaced(t, order)
	path := "/v1/orders/" + order.Text("id")

	cancel := func(path string, headers ...string) testkit.Answer {
		return post(alice, path+"/cancellation", "k", `{}`, headers...)
	}
	current := order.Header.Get("ETag")
	requireRefused(t, cancel("/v1/orders/01890000-0000-7000-8000-000000000000", "If-Match", current), 404, "order_not_found")
	requireRefused(t, cancel(path), 428, "precondition_required")
	requireRefused(t, cancel(path, "If-Match", `not a tag`), 400, "invalid_precondition")
	requireRefused(t, cancel(path, "If-Match", `"AAAAAAAAAAkAAAAAAAAAAA"`), 409, "version_conflict")
	refund := `{"amount":{"amount":1,"currency":"EUR"}}`
	requireRefused(t, post(alice, path+"/refunds", "k", refund), 409, "order_not_refundable")
	requireRefused(t, post(alice, "/v1/products/NONE-001/stock-adjustments", "k", `{"delta":1}`), 404, "product_not_found")
	requireRefused(t, post(alice, "/v1/products/TEA-001/stock-adjustments", "k", `{"delta":-100}`), 409, "insufficient_stock")
	require.Zero(t, s.Count(t, `idempotency_keys WHERE key = 'k'`))

	accepted := cancel(path, "If-Match", current)
	require.Equal(t, 200, accepted.Status, string(accepted.Body))
	require.False(t, replayed(accepted))
}

// Ensure an unexpected error undoes everything, the claim included, at whatever statement it strikes.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
func TestIdempotencyAnInternalErrorLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	alice := s.As(t, "alice")
	for _, c := range []struct{ name, harm, repair string }{
		{"at the stock", `ALTER TABLE stock RENAME TO away`, `ALTER TABLE away RENAME TO stock`},
		{"at the order", `ALTER TABLE orders ADD CONSTRAINT never CHECK (customer_id <> 'alice')`, `ALTER TABLE orders DROP CONSTRAINT never`},
		{"at the payment", `ALTER TABLE payments ADD CONSTRAINT never CHECK (amount < 0)`, `ALTER TABLE payments DROP CONSTRAINT never`},
		{"at the job", `ALTER TABLE river_job RENAME TO away`, `ALTER TABLE away RENAME TO river_job`},
		{"at the answer", `ALTER TABLE idempotency_keys ADD CONSTRAINT never CHECK (state <> 'completed')`, `ALTER TABLE idempotency_keys DROP CONSTRAINT never`},
	} {
		t.Log(c.name)
		s.Begin(t).Exec(c.harm).Commit()
		refused := place(alice, "k", tea())
		s.Begin(t).Exec(c.repair).Commit()
		requireRefused(t, refused, http.StatusInternalServerError, "internal_error")
		requireStored(t, s, 0)
	}
	requireUntouched(t, s, alice)
}

// Ensure a panic in the handler undoes everything too, gives the turn at the key to the next duplicate and the
// connection back to the pool.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAPanicLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_MAX_CONNS", "1")
	alice := startPanicking(t, s, 2).As(t, "alice")
	for range 2 {
		requireRefused(t, place(alice, "k", tea()), http.StatusInternalServerError, "internal_error")
		requireStored(t, s, 0)
	}
	requireUntouched(t, s, alice)
}

// startPanicking starts an API of the real parts but for an outbox that panics the first times, when the order and its
// payment have been written.
func startPanicking(t *testing.T, s *testkit.Service, times int32) *testkit.Service {
	t.Helper()
	c, err := config.LoadAPI(func(name string) (string, bool) { v, ok := s.Env[name]; return v, ok })
	require.NoError(t, err)
	tel := s.Metrics["api"]
	pool, err := postgres.Open(t.Context(), c.Database, "orders-api", tel.Traces)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var left atomic.Int32
	left.Store(times)
	out := func(tx *postgres.Session) app.Outbox { return panicking{outbox.In(tx), &left} }
	store := postgres.NewStore(pool, out, postgres.Settings{
		KeyWait: c.KeyWait, LockTimeout: c.Database.LockTimeout, AcquireTimeout: c.Database.AcquireTimeout,
	}, tel.Metrics, tel.Traces)
	service := app.New(store, postgres.NewReader(store), nil, app.Settings{KeyRetention: c.KeyRetention},
		telemetry.Findings{Metrics: tel.Metrics, Log: testkit.Log()})
	auth, err := httpapi.NewJWTAuthenticator(t.Context(), httpapi.JWTConfig{
		Issuer: c.AuthIssuer, Audience: c.AuthAudience, JWKSURL: c.AuthJWKSURL,
	}, tel.Metrics, testkit.Log())
	require.NoError(t, err)
	handler, err := httpapi.New(service, auth, nil, tel.Metrics, testkit.Log())
	require.NoError(t, err)
	server := httptest.NewServer(otelhttp.NewHandler(handler, "api", otelhttp.WithTracerProvider(tel.Traces)))
	t.Cleanup(server.Close)
	return s.At(server.URL)
}

type panicking struct {
	app.Outbox
	left *atomic.Int32
}

func (p panicking) ChargeOrder(ctx context.Context, ref app.OrderRef) error {
	if p.left.Add(-1) >= 0 {
		panic("a bug in a handler")
	}
	return p.Outbox.ChargeOrder(ctx, ref)
}
