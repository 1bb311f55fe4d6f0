package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/testkit"
)

const (
	signed      = "signed"   // what the parser of these tests takes for a valid signature
	unreadable  = "no event" // a body that it cannot read
	eventsPath  = "/v1/provider-events"
	eventsBound = 256 << 10
)

// signatures is an app.EventParser. Its events are about no order, so that they are answered without a store.
type signatures struct{}

func (signatures) ParseEvent(body []byte, signature string) (app.ProviderEvent, error) {
	switch {
	case signature != signed:
		return app.ProviderEvent{}, app.ErrInvalidSignature
	case string(body) == unreadable:
		return app.ProviderEvent{}, errors.New("secret text of a parser")
	}
	return app.ProviderEvent{ID: "evt_1", Type: "payment_intent.succeeded"}, nil
}

// event is a delivery of the provider: it has no token.
func event(body string, header ...string) ask {
	a := ask{
		method: http.MethodPost, path: eventsPath, body: body,
		header: map[string][]string{"Authorization": nil, "Stripe-Signature": {signed}},
	}
	for i := 0; i+1 < len(header); i += 2 {
		a.header[header[i]] = append([]string{}, header[i+1])
	}
	return a
}

// Ensure an event counts by one valid signature over its raw body alone: neither a token nor a query nor any member of the
// body takes its place, and what is wrong with the rest of the request is not looked at before.
func TestProviderEventNeedsOneSignature(t *testing.T) {
	t.Parallel()
	b := start(t)
	token := event(`{}`, "Stripe-Signature", "forged", "Authorization", "Bearer orders:write")
	none, two := event(`{}`), event(`{}`)
	none.header["Stripe-Signature"] = nil
	two.header["Stripe-Signature"] = []string{signed, signed}
	for name, a := range map[string]ask{
		"forged": event(`{}`, "Stripe-Signature", "forged"), "token": token, "missing": none, "repeated": two,
		"empty": event(`{}`, "Stripe-Signature", ""), "no event": event(unreadable, "Stripe-Signature", "forged"),
	} {
		b.refused(name, a, http.StatusBadRequest, "invalid_signature")
	}
	requireReceived(t, b.send(event(`{}`)))
}

// Ensure the body of an event is bounded, is JSON, and is the provider's to shape: members that no contract names, repeated
// or nested ones and any query are no reason to refuse it.
func TestProviderEventBody(t *testing.T) {
	t.Parallel()
	b := start(t)
	full := `{"a":"` + strings.Repeat("x", eventsBound-8) + `"}`
	require.Len(t, full, eventsBound)
	requireReceived(t, b.send(event(full)))
	b.refused("too large", event(full+" "), http.StatusRequestEntityTooLarge, "body_too_large")
	endless := event("")
	endless.reader = strings.NewReader(full + " ")
	b.refused("too large, of unknown length", endless, http.StatusRequestEntityTooLarge, "body_too_large")
	b.refused("form", event(`{}`, "Content-Type", "application/x-www-form-urlencoded"),
		http.StatusUnsupportedMediaType, "unsupported_media_type")
	encoded := b.refused("encoded", event(`{}`, "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, "unsupported_media_type")
	require.Equal(t, "identity", encoded.Header.Get("Accept-Encoding"))
	twice := event(`{}`)
	twice.header["Content-Type"] = []string{"application/json", "application/json"}
	b.refused("two types", twice, http.StatusUnsupportedMediaType, "unsupported_media_type")

	malformed := b.refused("no event", event(unreadable), http.StatusBadRequest, "malformed_request")
	require.NotContains(t, string(malformed.Body), "secret")
	require.NotContains(t, b.log.String(), "secret")

	for _, body := range []string{`{"a":1,"a":2}`, `{"deep":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, `{"t":"\u0000"}`} {
		requireReceived(t, b.send(event(body)))
	}
	query := event(`{}`)
	query.path += "?order_id=%zz&limit=-1"
	requireReceived(t, b.send(query))
}

func requireReceived(t *testing.T, a testkit.Answer) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.JSONEq(t, `{"received":true}`, string(a.Body))
}
