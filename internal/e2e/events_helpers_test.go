package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// eventOf is an event of the provider about an intent whose metadata names an order.
func eventOf(id, kind, tenant, order, intent string) string {
	return eventAbout(id, kind, map[string]any{
		"id": intent, "object": "payment_intent", "metadata": map[string]string{"tenant_id": tenant, "order_id": order},
	})
}

func eventAbout(id, kind string, object any) string {
	raw, err := json.Marshal(map[string]any{
		"id": id, "object": "event", "type": kind, "data": map[string]any{"object": object},
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// signature signs a body with a secret, as the provider did so long ago.
func signature(body, secret string, age time.Duration) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: []byte(body), Secret: secret, Timestamp: time.Now().Add(-age),
	}).Header
}

// deliver posts a body under a valid signature of now. It may be called by any goroutine.
func (s shop) deliver(body string) testkit.Answer {
	return s.deliverSigned(body, signature(body, sandbox.DefaultEventSecret, 0))
}

// deliverSigned posts a body under signatures, each a header line of its own, and holds the answer to the contract.
func (s shop) deliverSigned(body string, signatures ...string) testkit.Answer {
	r, err := http.NewRequest(http.MethodPost, s.URL+testkit.EventsPath, strings.NewReader(body))
	if err != nil {
		return testkit.Answer{Body: []byte(err.Error())}
	}
	r.Header["Content-Type"], r.Header["Stripe-Signature"] = []string{"application/json; charset=utf-8"}, signatures
	client := &http.Client{Timeout: testkit.Wait, Transport: testkit.Checked(s.t, http.DefaultTransport)}
	response, err := client.Do(r)
	if err != nil {
		return testkit.Answer{Body: []byte(err.Error())}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		raw = []byte(err.Error())
	}
	return testkit.Answer{Status: response.StatusCode, Header: response.Header, Body: raw}
}

// anEvent is an event that was not delivered before, about an order.
func (s shop) anEvent(order string) string {
	return eventOf("evt_"+strings.ReplaceAll(uuid.NewString(), "-", ""), "payment_intent.succeeded", "default", order, "pi_1")
}

// requireEvents checks how many events are in the inbox and how many jobs they have left.
func (s shop) requireEvents(inbox, jobs int) {
	s.t.Helper()
	require.Equal(s.t, inbox, s.Count(s.t, `provider_events`))
	require.Equal(s.t, jobs, s.Count(s.t, `river_job WHERE kind = 'settle-payment'`))
}

// delivered waits until the sandbox has nothing left to deliver.
func (s shop) delivered() {
	s.t.Helper()
	require.NoError(s.t, s.Sandbox.WaitEventsDelivered(s.t.Context()))
}

// jobsAtWork selects the jobs that have still to ask the provider.
const jobsAtWork = `river_job WHERE kind IN ('charge-order', 'refund-charge', 'settle-payment')
	AND state NOT IN ('completed', 'cancelled', 'discarded')`

// settled waits until every event is delivered and every job that asks the provider about a payment is done.
func (s shop) settled() {
	s.t.Helper()
	testkit.Eventually(s.t, "payments at rest", func() bool {
		s.delivered()
		return s.Count(s.t, jobsAtWork) == 0
	})
}

// intentOf is the id of the intent that has charged an order.
func (s shop) intentOf(order string) string {
	s.t.Helper()
	for _, c := range s.Sandbox.Ledger().Charges {
		if c.OrderID == order {
			return c.ID
		}
	}
	require.FailNow(s.t, "no charge", order)
	return ""
}

// chargeUnknown charges an order of the provider's that is not here, as of before a restore, and returns its intent.
func (s shop) chargeUnknown(order string) string {
	s.t.Helper()
	form := url.Values{
		"amount": {"700"}, "currency": {"eur"}, "payment_method": {"pm_card_visa"}, "confirm": {"true"},
		"payment_method_types[]": {"card"}, "metadata[tenant_id]": {"default"}, "metadata[order_id]": {order},
	}
	r, err := http.NewRequest(http.MethodPost, s.Env["STRIPE_BASE_URL"]+"/v1/payment_intents", strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.Env["STRIPE_API_KEY"])
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, string(raw))
	return s.intentOf(order)
}

// found is how often a part of the service has found something out about money.
func (s shop) found(part, kind string) float64 {
	return scrape(s.t, s.Metrics[part]).Value("orders_payment_findings_total", "kind", kind)
}

func requireReceived(t testing.TB, a testkit.Answer) {
	t.Helper()
	requireStatus(t, http.StatusOK, a)
}
