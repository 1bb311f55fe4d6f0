package sandbox_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"
	"github.com/stripe/stripe-mock/spec"
)

// stripeMock is Stripe's own mock and the OpenAPI that it checks requests against. It keeps no state. It is made once,
// since reading the OpenAPI takes seconds.
type stripeMock struct {
	*server.StubServer
	spec *spec.Spec
}

var loadStripeMock = sync.OnceValues(func() (stripeMock, error) {
	openAPI, err := server.LoadSpec(embedded.OpenAPISpec, "")
	if err != nil {
		return stripeMock{}, err
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		return stripeMock{}, err
	}
	stub, err := server.NewStubServer(fixtures, openAPI, false, false)
	return stripeMock{stub, openAPI}, err
})

// Ensure the sandbox takes no request that Stripe's own OpenAPI refuses, and shows no member and no state that it does
// not know: what works here must exist there.
func TestSandboxKeepsToStripesOpenAPI(t *testing.T) {
	t.Parallel()
	mock, err := loadStripeMock()
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t)
	pi, other := b.create("o1", "pm_card_visa").ID, b.create("o2", "pm_card_visa").ID
	paid := b.mustCharge("o3", "pm_card_visa").ID
	refund, err := b.refund(paid, "r0", 100)
	if err != nil {
		t.Fatal(err)
	}
	all := url.Values{
		"amount": {"1999"}, "currency": {"eur"}, "confirm": {"true"}, "payment_method": {"pm_card_visa"},
		"payment_method_types[0]": {"card"}, "error_on_requires_action": {"true"},
		"metadata[a]": {"b"},
	}
	for _, c := range []struct {
		method, path string
		form         url.Values
	}{
		{"POST", intents, all},
		{"POST", intents + "/" + pi + "/confirm", url.Values{
			"payment_method": {"pm_card_visa"}, "error_on_requires_action": {"true"},
		}},
		{"POST", intents + "/" + other + "/cancel", nil},
		{"POST", "/v1/refunds", url.Values{
			"payment_intent": {paid}, "amount": {"100"}, "metadata[a]": {"b"},
		}},
		{"GET", intents + "/" + pi, nil},
		{"GET", intents, url.Values{"limit": {"5"}, "created[gte]": {"1"}, "starting_after": {paid}}},
		{"GET", intents + "/search", url.Values{"query": {"metadata['order_id']:'o3'"}, "limit": {"5"}, "page": {paid}}},
		{"GET", "/v1/refunds", url.Values{"payment_intent": {paid}, "limit": {"5"}, "created[gte]": {"9"}}},
		{"GET", "/v1/refunds/" + refund.ID, nil},
		{"GET", "/v1/events", url.Values{"types[0]": {"refund.created"}, "limit": {"5"}, "created[gte]": {"9"}}},
	} {
		name := c.method + " " + c.path
		equal(t, "stripe-mock: "+name, ask(mock.HandleRequest, c.method, c.path, c.form).status, http.StatusOK)
		r := ask(b.Handler().ServeHTTP, c.method, c.path, c.form)
		equal(t, "sandbox: "+name, r.status, http.StatusOK)
		mock.requireKnown(t, []byte(r.body))
	}
	for _, state := range []string{"declined", "processing", "requires_action", "requires_payment_method"} {
		mock.requireKnown(t, []byte(b.getIntent(b.in(state).ID)))
	}
	if err := b.OpenDispute(paid); err != nil {
		t.Fatal(err)
	}
	mock.requireKnown(t, []byte(b.get("/v1/events?limit=100").body))
}

// ask makes a request as the real client does: parameters in the body of a POST, in the address of a GET.
func ask(handler http.HandlerFunc, method, path string, form url.Values) reply {
	target, body := path, form.Encode()
	if method == http.MethodGet && len(form) > 0 {
		target, body = path+"?"+body, ""
	}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sk_test_123")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	handler(w, r)
	return reply{w.Code, w.Result().Header, w.Body.String()}
}

// requireKnown walks through a document and checks every object in it that says which one it is.
func (m stripeMock) requireKnown(t *testing.T, raw []byte) {
	t.Helper()
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	m.walk(t, document)
}

func (m stripeMock) walk(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			m.walk(t, item)
		}
	case map[string]any:
		m.checkObject(t, v)
		for _, member := range v {
			m.walk(t, member)
		}
	}
}

func (m stripeMock) checkObject(t *testing.T, object map[string]any) {
	t.Helper()
	kind, _ := object["object"].(string)
	schema := m.spec.Components.Schemas[kind]
	if schema == nil {
		return // a list, or the value of a member
	}
	for name, value := range object {
		property := schema.Properties[name]
		if property == nil {
			t.Errorf("Stripe's %s has no %s", kind, name)
		} else if len(property.Enum) > 0 && value != nil && !slices.Contains(property.Enum, value) {
			t.Errorf("Stripe's %s.%s is never %v", kind, name, value)
		}
	}
	if kind == "event" {
		hooks := m.spec.Paths["/v1/webhook_endpoints"]["post"].RequestBody.Content["application/x-www-form-urlencoded"]
		if types := hooks.Schema.Properties["enabled_events"].Items.Enum; !slices.Contains(types, object["type"]) {
			t.Errorf("Stripe has no events of type %v", object["type"])
		}
	}
}
