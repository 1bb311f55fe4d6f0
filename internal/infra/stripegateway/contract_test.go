package stripegateway_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/sandbox"
)

// stripeMock is Stripe's own mock: it checks every request against Stripe's OpenAPI and answers with a fixture. It
// keeps no state. It is made once, since reading the OpenAPI takes seconds.
var stripeMock = sync.OnceValues(func() (*server.StubServer, error) {
	spec, err := server.LoadSpec(embedded.OpenAPISpec, "")
	if err != nil {
		return nil, err
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		return nil, err
	}
	return server.NewStubServer(fixtures, spec, false, false)
})

func startStripeMock(t *testing.T) *provider {
	t.Helper()
	stub, err := stripeMock()
	require.NoError(t, err)
	return startProvider(t, stub.HandleRequest)
}

// startSandbox starts the project's own stand-in, whose search does not lag.
func startSandbox(t *testing.T) (*provider, *sandbox.Sandbox) {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{Issuer: "http://issuer.invalid", Audience: "orders-api", SearchLag: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return startProvider(t, s.Handler().ServeHTTP), s
}

// contractCalls makes every call once, the way a use case would, and fails if an answer that is about what was asked is
// not believed. asked false: the answers are fixtures, so those about one object are about another one.
func contractCalls(t *testing.T, p app.PaymentProvider, asked bool) (charged, canceled string) {
	t.Helper()
	ctx := t.Context()
	believed := func(err error) {
		t.Helper()
		if asked {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, app.ErrMismatch)
	}
	create := func(generation int) app.IntentRequest {
		r := charge
		r.IntentID, r.Generation = "", generation
		intent, err := p.CreateIntent(ctx, r)
		believed(err)
		r.IntentID = intent.ID
		if !asked {
			r.IntentID = "pi_of_a_fixture"
		}
		return r
	}
	r := create(1)
	_, err := p.RetrieveIntent(ctx, r)
	believed(err)
	_, err = p.ConfirmIntent(ctx, r)
	believed(err)
	rr := refund
	rr.IntentID = r.IntentID
	_, err = p.CreateRefund(ctx, rr)
	believed(err)
	_, err = p.ListRefunds(ctx, r)
	believed(err)
	other := create(2)
	_, err = p.CancelIntent(ctx, other)
	believed(err)
	found, err := p.SearchIntents(ctx, r)
	require.NoError(t, err)
	require.Equal(t, asked, len(found) == 2)
	for _, stream := range []app.ProviderStream{app.StreamIntents, app.StreamRefunds, app.StreamEvents} {
		_, err = p.List(ctx, app.ProviderQuery{Stream: stream, From: time.Unix(1, 0), Limit: 50})
		require.NoError(t, err)
	}
	return r.IntentID, other.IntentID
}

// contractRequests is what contractCalls sends.
func contractRequests(charged, canceled string) []request {
	order := "order:default:" + ref.OrderID.String() + ":"
	meta := map[string]string{"tenant_id": "default", "order_id": ref.OrderID.String()}
	created := form(meta, map[string]string{
		"amount": "3998", "currency": "eur", "payment_method": "pm_card_visa", "payment_method_types[0]": "card",
	})
	none, listed := form(nil, nil), form(nil, map[string]string{"created[gte]": "1", "limit": "50"})
	events := form(nil, map[string]string{
		"created[gte]": "1", "limit": "50",
		"types[0]": "payment_intent.processing", "types[1]": "payment_intent.requires_action",
		"types[2]": "payment_intent.succeeded", "types[3]": "payment_intent.payment_failed",
		"types[4]": "payment_intent.canceled", "types[5]": "refund.created", "types[6]": "refund.updated", "types[7]": "refund.failed", "types[8]": "charge.refunded",
	})
	get, post, ok := http.MethodGet, http.MethodPost, http.StatusOK
	return []request{
		{post, "/v1/payment_intents", order + "intent", created, ok},
		{get, "/v1/payment_intents/" + charged, "", none, ok},
		{post, "/v1/payment_intents/" + charged + "/confirm", order + "confirm", form(nil, map[string]string{
			"error_on_requires_action": "true",
		}), ok},
		{post, "/v1/refunds", "refund:default:" + refund.RefundID.String(), form(meta, map[string]string{
			"payment_intent": charged, "amount": "1000", "metadata[refund_id]": refund.RefundID.String(),
		}), ok},
		{get, "/v1/refunds", "", form(nil, map[string]string{"payment_intent": charged, "limit": "100"}), ok},
		{post, "/v1/payment_intents", order + "intent:2", created, ok},
		{post, "/v1/payment_intents/" + canceled + "/cancel", order + "cancel:2", none, ok},
		{get, "/v1/payment_intents/search", "", form(nil, map[string]string{
			"query": "metadata['order_id']:'" + ref.OrderID.String() + "'", "limit": "100",
		}), ok},
		{get, "/v1/payment_intents", "", listed, ok},
		{get, "/v1/refunds", "", listed, ok},
		{get, "/v1/events", "", events, ok},
	}
}

// Ensure every request of the gateway is one that Stripe's own OpenAPI allows, in its path, its parameters and their
// types, and that the sandbox takes the same ones.
func TestContract(t *testing.T) {
	t.Parallel()
	sandboxed, _ := startSandbox(t)
	for name, server := range map[string]struct {
		provider *provider
		asked    bool // answers are about what was asked, and not fixtures
	}{
		"stripe-mock": {startStripeMock(t), false},
		"sandbox":     {sandboxed, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := server.provider
			charged, canceled := contractCalls(t, stripegatewayOf(p), server.asked)
			require.Equal(t, contractRequests(charged, canceled), p.requests())
		})
	}
}

func stripegatewayOf(p *provider) app.PaymentProvider { return p.gateway(time.Minute) }

// Ensure the mock and the sandbox refuse what Stripe does: without that, what they accept means nothing.
func TestStandInsRefuseWhatStripeDoes(t *testing.T) {
	t.Parallel()
	sandboxed, _ := startSandbox(t)
	for _, p := range []*provider{startStripeMock(t), sandboxed} {
		for name, body := range map[string]string{
			"an unknown parameter": "amount=100&currency=eur&order=7",
			"another type":         "amount=much&currency=eur",
			"a parameter missing":  "currency=eur",
		} {
			require.Equal(t, http.StatusBadRequest, post(t, p.url+"/v1/payment_intents", body), name)
		}
	}
}
