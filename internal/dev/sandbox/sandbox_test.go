package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// bench is one sandbox on a real socket with the real Stripe client in front of it.
type bench struct {
	*sandbox.Sandbox
	t      *testing.T
	url    string
	http   *http.Client
	stripe *stripe.Client
	clock  *clock
}

// clock is a time that a test moves by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func setup(t *testing.T) *bench { return setupState(t, "") }

func setupState(t *testing.T, stateFile string) *bench {
	t.Helper()
	c := &clock{now: time.Now()}
	s, err := sandbox.New(sandbox.Config{
		Issuer: "http://issuer.test", Audience: "orders-api", StateFile: stateFile, Now: c.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(s.ClearFaults) // runs first: Close waits for held requests
	return &bench{
		Sandbox: s, t: t, url: server.URL, http: server.Client(), clock: c,
		stripe: stripeClient(server.URL, server.Client()),
	}
}

func stripeClient(base string, client *http.Client) *stripe.Client {
	return stripe.NewClient("sk_test_sandbox", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(base), HTTPClient: client, MaxNetworkRetries: stripe.Int64(0),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
}

// chargeParams asks for 19.99 EUR on a card, for an order, under the key of that order.
func chargeParams(order, method string) *stripe.PaymentIntentCreateParams {
	p := &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(1999), Currency: stripe.String("eur"), Confirm: stripe.Bool(true),
		PaymentMethod: stripe.String(method), PaymentMethodTypes: []*string{stripe.String("card")},
		ErrorOnRequiresAction: stripe.Bool(true), Metadata: map[string]string{"order_id": order},
	}
	p.SetIdempotencyKey("order:" + order + ":charge")
	return p
}

func (b *bench) charge(order, method string) (*stripe.PaymentIntent, error) {
	return b.stripe.V1PaymentIntents.Create(b.t.Context(), chargeParams(order, method))
}

func (b *bench) mustCharge(order, method string) *stripe.PaymentIntent {
	b.t.Helper()
	pi, err := b.charge(order, method)
	if err != nil {
		b.t.Fatalf("charge %s on %s: %v", order, method, err)
	}
	return pi
}

func (b *bench) refund(intent, refundID string, amount int64) (*stripe.Refund, error) {
	p := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(intent),
		Metadata:      map[string]string{"refund_id": refundID},
	}
	if amount != 0 {
		p.Amount = stripe.Int64(amount)
	}
	p.SetIdempotencyKey("refund:" + refundID)
	return b.stripe.V1Refunds.Create(b.t.Context(), p)
}

func (b *bench) faults(rules ...sandbox.FaultRule) {
	b.t.Helper()
	if err := b.SetFaults(rules); err != nil {
		b.t.Fatal(err)
	}
}

// within bounds a wait, so that a broken promise fails the test instead of hanging it.
func (b *bench) within() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	b.t.Cleanup(cancel)
	return ctx
}

// reply is a raw answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends a raw Stripe request, for what the Stripe client hides.
func (b *bench) post(path, key string, form url.Values) reply {
	b.t.Helper()
	header := http.Header{"Authorization": {"Bearer sk_test_raw"}, "Content-Type": {"application/x-www-form-urlencoded"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return b.do(http.MethodPost, path, header, form.Encode())
}

func (b *bench) do(method, path string, header http.Header, body string) reply {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = header.Clone()
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(data)}
}

// form is a valid charge, with changes in pairs; an empty value removes a parameter.
func form(changes ...string) url.Values {
	f := url.Values{
		"amount": {"1999"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_visa"},
		"metadata[order_id]": {"o1"},
	}
	for i := 0; i < len(changes); i += 2 {
		f.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			f.Del(changes[i])
		}
	}
	return f
}

// stripeError returns the error as Stripe's client types it.
func stripeError(t *testing.T, err error) *stripe.Error {
	t.Helper()
	var e *stripe.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a Stripe error", err)
	}
	return e
}

// errorOf reads Stripe's error object out of a raw answer.
func errorOf(t *testing.T, r reply) *stripe.Error {
	t.Helper()
	var body struct{ Error *stripe.Error }
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Error == nil {
		t.Fatalf("no error object in %d %s", r.status, r.body)
	}
	return body.Error
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Ensure an answer without a test key is Stripe's 401, and that it is an attempt all the same.
func TestAPIKeyIsRequired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, authorization := range []string{"", "Bearer sk_live_1", "Basic sk_test_1"} {
		header := http.Header{"Authorization": {authorization}, "Content-Type": {"application/x-www-form-urlencoded"}}
		r := b.do(http.MethodPost, "/v1/payment_intents", header, form().Encode())
		equal(t, "status", r.status, http.StatusUnauthorized)
		equal(t, "type", errorOf(t, r).Type, stripe.ErrorTypeInvalidRequest)
	}
	equal(t, "charges", len(b.Ledger().Charges), 0)
	equal(t, "attempts", len(b.Attempts()), 3)
	equal(t, "outcome", b.Attempts()[0].Outcome, "rejected")
}

// Ensure the ledger and the attempts show arrays from the first moment, in the shape that readers rely on.
func TestEmptyBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, want := range map[string]string{
		"/ledger": `{"charges":[],"refunds":[]}`, "/attempts": `[]`, "/faults": `{"rules":[]}`,
	} {
		equal(t, path, strings.TrimSpace(b.do(http.MethodGet, path, nil, "").body), want)
	}
}

// Ensure the books name orders and refunds, and that equal parameters have equal hashes in every attempt.
func TestBooksOfAChargeAndARefund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")
	b.mustCharge("o1", "pm_card_visa")
	re, err := b.refund(pi.ID, "r1", 500)
	if err != nil {
		t.Fatal(err)
	}
	var ledger sandbox.Ledger
	if err := json.Unmarshal([]byte(b.do(http.MethodGet, "/ledger", nil, "").body), &ledger); err != nil {
		t.Fatal(err)
	}
	equal(t, "charges", len(ledger.Charges), 1)
	equal(t, "charge", ledger.Charges[0], sandbox.LedgerCharge{
		ID: pi.ID, OrderID: "o1", Amount: 1999, Currency: "EUR", Status: "succeeded"})
	equal(t, "refund", ledger.Refunds[0], sandbox.LedgerRefund{
		ID: re.ID, OrderID: "o1", RefundID: "r1", Amount: 500, Status: "succeeded"})

	attempts := b.Attempts()
	equal(t, "attempts", len(attempts), 3)
	equal(t, "key", attempts[1].IdempotencyKey, "order:o1:charge")
	equal(t, "hash", attempts[1].ParamsSHA256, attempts[0].ParamsSHA256)
	equal(t, "order in params", attempts[1].Params["metadata[order_id]"], "o1")
	equal(t, "first outcome", attempts[0].Outcome, "executed")
	equal(t, "second outcome", attempts[1].Outcome, "replayed")
	equal(t, "path", attempts[2].Path, "/v1/refunds")
}

// Ensure addresses that the sandbox does not serve are refused as Stripe refuses them, and plain pages are there.
func TestOtherAddresses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.do(http.MethodGet, "/v1/charges", nil, "")
	equal(t, "status", r.status, http.StatusNotFound)
	equal(t, "type", errorOf(t, r).Type, stripe.ErrorTypeInvalidRequest)
	equal(t, "livez", b.do(http.MethodGet, "/livez", nil, "").status, http.StatusOK)
	if index := b.do(http.MethodGet, "/", nil, ""); !strings.Contains(index.body, "/v1/payment_intents") {
		t.Errorf("the index does not say what is offered: %s", index.body)
	}
}

// Ensure WaitCharges wakes when the charge arrives, and ends with its context.
func TestWaitCharges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan error, 1)
	go func() { done <- b.WaitCharges(b.within(), 1) }()
	b.mustCharge("o1", "pm_card_visa")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.WaitCharges(ended, 2); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the end of the context", err)
	}
}
