package stripegateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"
)

// stripeMock is Stripe's own mock: it checks every request against Stripe's OpenAPI and answers with a fixture. It keeps
// no state, so these tests look at whether a request was accepted, not at what came of it. It is made once, since
// reading the OpenAPI takes seconds.
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

// Ensure every call that the gateway makes is one that Stripe's own OpenAPI allows: its paths, its parameters and their
// types.
func TestStripeAcceptsOurRequests(t *testing.T) {
	t.Parallel()
	mock := startStripeMock(t)
	gateway := mock.gateway(time.Minute)
	ctx := t.Context()

	_, err := gateway.Charge(ctx, charge) // the fixture is an intent without a card, whatever was asked
	require.NoError(t, err)
	_, found, err := gateway.FindCharge(ctx, ref)
	require.NoError(t, err)
	require.False(t, found, "the fixture is the charge of somebody else")
	answer, err := gateway.Refund(ctx, refund)
	require.NoError(t, err)
	require.True(t, answer.Succeeded)
	_, found, err = gateway.FindRefund(ctx, refund)
	require.NoError(t, err)
	require.False(t, found, "the fixture is the refund of something else")

	meta := map[string]string{"tenant_id": "default", "order_id": ref.OrderID.String()}
	require.Equal(t, []request{
		{http.MethodPost, "/v1/payment_intents", "order:" + ref.OrderID.String() + ":charge", form(meta, map[string]string{
			"amount": "3998", "currency": "eur", "confirm": "true", "payment_method": "pm_card_visa",
			"payment_method_types[0]": "card", "error_on_requires_action": "true",
		}), http.StatusOK},
		{http.MethodGet, "/v1/payment_intents/search", "", form(nil, map[string]string{
			"query": "metadata['order_id']:'" + ref.OrderID.String() + "'",
		}), http.StatusOK},
		{http.MethodPost, "/v1/refunds", "refund:" + refund.RefundID.String(), form(meta, map[string]string{
			"payment_intent": "pi_123", "amount": "1000", "metadata[refund_id]": refund.RefundID.String(),
		}), http.StatusOK},
		{http.MethodGet, "/v1/refunds", "", form(nil, map[string]string{"payment_intent": "pi_123"}), http.StatusOK},
	}, mock.requests())
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

// Ensure the mock would have refused a request that Stripe does not allow: without that, its yes means nothing.
func TestStripeMockRefusesWhatStripeDoes(t *testing.T) {
	t.Parallel()
	mock := startStripeMock(t)
	for name, body := range map[string]string{
		"an unknown parameter": "amount=1&currency=eur&order=7",
		"another type":         "amount=much&currency=eur",
		"a parameter missing":  "currency=eur",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mock.url+"/v1/payment_intents", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer sk_test_123")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadRequest, response.StatusCode, name)
	}
}
