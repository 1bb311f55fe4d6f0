package stripegateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/app"
	"example.com/orders/internal/infra/stripegateway"
)

const (
	currentSecret = "whsec_current"
	nextSecret    = "whsec_next"
)

// sign is the header of a notification.
func sign(body string, at time.Time, secret string) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: []byte(body), Secret: secret, Timestamp: at,
	}).Header
}

func parse(t *testing.T, body string) (app.ProviderEvent, error) {
	t.Helper()
	p := stripegateway.NewEventParser(0, currentSecret)
	return p.ParseEvent([]byte(body), sign(body, time.Now(), currentSecret))
}

// Ensure an event is accepted from the provider alone, signed lately, with either secret while one is rotated.
func TestEventSignatures(t *testing.T) {
	t.Parallel()
	body, now := eventJSON("evt_1", "payment_intent.succeeded", intentJSON()), time.Now()
	both := stripegateway.NewEventParser(time.Minute, currentSecret, nextSecret)
	one := stripegateway.NewEventParser(time.Minute, currentSecret, "")
	none := stripegateway.NewEventParser(time.Minute, "", "")
	mixed := sign(body, now, "whsec_old") + ",v1=" + strings.Split(sign(body, now, nextSecret), "v1=")[1]
	for name, test := range map[string]struct {
		parser    *stripegateway.EventParser
		signature string
		ok        bool
	}{
		"current":               {both, sign(body, now, currentSecret), true},
		"next":                  {both, sign(body, now, nextSecret), true},
		"several signatures":    {both, mixed, true},
		"only the current":      {one, sign(body, now, currentSecret), true},
		"not yet the next":      {one, sign(body, now, nextSecret), false},
		"an empty secret":       {one, sign(body, now, ""), false},
		"no secret":             {none, sign(body, now, ""), false},
		"another secret":        {both, sign(body, now, "whsec_other"), false},
		"another body":          {both, sign(body+" ", now, currentSecret), false},
		"old":                   {both, sign(body, now.Add(-2*time.Minute), currentSecret), false},
		"old, with the next":    {both, sign(body, now.Add(-2*time.Minute), nextSecret), false},
		"not signed":            {both, "", false},
		"no signature":          {both, "t=1", false},
		"no header of Stripe's": {both, "Luck", false},
		"another scheme":        {both, strings.Replace(sign(body, now, currentSecret), "v1=", "v0=", 1), false},
	} {
		got, err := test.parser.ParseEvent([]byte(body), test.signature)
		if !test.ok {
			require.ErrorIs(t, err, app.ErrInvalidSignature, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, app.ProviderEvent{ID: "evt_1", Type: "payment_intent.succeeded", Ref: ref, IntentID: "pi_1"}, got)
	}
}

// Ensure the order and the intent are read from whatever an event is about.
func TestEvents(t *testing.T) {
	t.Parallel()
	meta := fmt.Sprintf(`{"tenant_id":"default","order_id":%q}`, ref.OrderID)
	for name, test := range map[string]struct {
		kind, object string
		want         app.ProviderEvent
	}{
		"an intent":          {"payment_intent.canceled", intentJSON(), app.ProviderEvent{Ref: ref, IntentID: "pi_1"}},
		"a refund":           {"refund.failed", refundJSON(), app.ProviderEvent{Ref: ref, IntentID: "pi_1"}},
		"a foreign refund":   {"refund.created", refundJSON("metadata", noMetadata), app.ProviderEvent{IntentID: "pi_1"}},
		"a charge":           {"charge.refunded", `{"object":"charge","id":"ch_1","payment_intent":"pi_1","metadata":` + meta + `}`, app.ProviderEvent{Ref: ref, IntentID: "pi_1"}},
		"a dispute":          {"charge.dispute.created", `{"object":"dispute","id":"dp_1","payment_intent":"pi_1","metadata":{}}`, app.ProviderEvent{IntentID: "pi_1", Dispute: true}},
		"an expanded intent": {"charge.dispute.closed", `{"object":"dispute","payment_intent":{"id":"pi_1"}}`, app.ProviderEvent{IntentID: "pi_1", Dispute: true}},
		"something else":     {"customer.created", `{"object":"customer","id":"cus_1"}`, app.ProviderEvent{}},
	} {
		got, err := parse(t, eventJSON("evt_1", test.kind, test.object))
		require.NoError(t, err, name)
		test.want.ID, test.want.Type = "evt_1", test.kind
		require.Equal(t, test.want, got, name)
	}
}

// Ensure an order is only one that this service can have written, so that every reference can be stored.
func TestEventsOfNoOrder(t *testing.T) {
	t.Parallel()
	order := ref.OrderID.String()
	for _, metadata := range []string{
		`null`, `7`, `[]`, `"x"`, `{"tenant_id":"default"}`, `{"order_id":"` + order + `"}`,
		`{"tenant_id":7,"order_id":"` + order + `"}`, `{"tenant_id":"default","order_id":7}`,
		`{"tenant_id":"default","order_id":["` + order + `"]}`, `{"tenant_id":"default","order_id":"{` + order + `}"}`,
		`{"tenant_id":"default","order_id":"` + strings.ReplaceAll(order, "-", "") + `"}`,
		`{"tenant_id":"default","order_id":"00000000-0000-0000-0000-000000000000"}`,
		`{"tenant_id":"","order_id":"` + order + `"}`, `{"tenant_id":"a\u0000b","order_id":"` + order + `"}`,
		`{"tenant_id":"` + strings.Repeat("a", 256) + `","order_id":"` + order + `"}`,
	} {
		got, err := parse(t, eventJSON("evt_1", "payment_intent.succeeded", intentJSON("metadata", metadata)))
		require.NoError(t, err)
		require.Equal(t, app.ProviderEvent{ID: "evt_1", Type: "payment_intent.succeeded", IntentID: "pi_1"}, got, metadata)
	}
	for _, id := range []string{`7`, `null`, `""`, `"` + strings.Repeat("p", 256) + `"`, `"pi 1"`, `{"id":"pi_1"}`} {
		got, err := parse(t, eventJSON("evt_1", "payment_intent.succeeded", intentJSON("id", id)))
		require.NoError(t, err)
		require.Empty(t, got.IntentID, id)
	}
}

func unreadableEvents() []string {
	return []string{
		``, `{`, `null`, `[]`, `7`, `{}`, `{"object":"event"}`, `{"object":"v2.core.event","id":"evt_1","type":"a.b"}`,
		`{"object":"event","id":"evt_1"}`, `{"object":"event","type":"a.b"}`, `{"object":"event","id":"Luck 4242","type":"a.b"}`,
		`{"object":"event","id":"evt_1","type":"Luck 4242"}`, `{"object":"event","id":7,"type":"a.b"}`,
		`{"object":"event","id":"evt_1","type":"a.b","created":4242e4242}`,
		`{"object":"event","id":"evt_1","type":"a.b","data":{"object":"secret 4242"}}`,
		eventJSON(strings.Repeat("e", 256), "a.b", `{}`), eventJSON("evt_1", "a.b", `{"n":4242e4242}`),
		eventJSON("evt_1", "a.b", strings.Repeat(`{"a":`, 20000)+`1`+strings.Repeat(`}`, 20000)),
	}
}

// Ensure a signed event that cannot be read is an error of another kind, which quotes nothing.
func TestUnreadableEvents(t *testing.T) {
	t.Parallel()
	for _, body := range unreadableEvents() {
		_, err := parse(t, body)
		requireSafe(t, err)
		require.NotErrorIs(t, err, app.ErrInvalidSignature)
	}
	got, err := parse(t, `{"object":"event","id":"evt_1","type":"a.b","data":null}`)
	require.NoError(t, err)
	require.Equal(t, app.ProviderEvent{ID: "evt_1", Type: "a.b"}, got)
}

// FuzzParseEvent feeds signed bodies of any content: none may panic, and what is read can always be stored.
func FuzzParseEvent(f *testing.F) {
	for _, object := range []string{intentJSON(), refundJSON(), `{"payment_intent":{"id":7},"metadata":[]}`} {
		f.Add([]byte(eventJSON("evt_1", "payment_intent.succeeded", object)))
	}
	p := stripegateway.NewEventParser(time.Hour, currentSecret)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := p.ParseEvent(body, sign(string(body), time.Now(), currentSecret))
		if err != nil {
			require.Empty(t, got)
			return
		}
		require.Regexp(t, `^[A-Za-z0-9_]{1,255}$`, got.ID)
		require.Regexp(t, `^[A-Za-z0-9_./-]{1,64}$`, got.Type)
		require.Regexp(t, `^[A-Za-z0-9_]{0,255}$`, got.IntentID)
		require.LessOrEqual(t, len(got.Ref.Tenant), 255)
		require.NotContains(t, got.Ref.Tenant, "\x00")
		require.True(t, json.Valid(body))
	})
}
