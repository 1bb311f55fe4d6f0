package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/testkit"
)

// Ensure nobody learns from any answer whether an order of another customer or another tenant exists, whatever is sent
// in If-Match, If-None-Match or the body: each answer equals that for an order that does not exist.
func TestForeignOrdersAnswerLikeNoOrders(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	open, shipped, cancelled := s.placePaid("pm_card_visa"), s.placePaid("pm_card_visa"), s.placePaid("pm_card_visa")
	requireStatus(t, http.StatusOK, shipment("JD01").send(s, shipped, s.order(shipped).Header.Get("ETag")))
	requireStatus(t, http.StatusOK, s.cancel(cancelled))
	none := uuid.Must(uuid.NewV7()).String()
	for name, stranger := range map[string]struct {
		caller *testkit.Caller
		staff  bool // whose scope is enough for any order of the tenant
	}{
		"another customer":       {s.As(t, "mallory"), true},
		"another tenant":         {s.AsOf(t, "alice", "acme", testkit.AllScopes), false},
		"another tenant's admin": {s.AsOf(t, "alice", "acme", testkit.AllScopes+" orders:admin"), false},
	} {
		for _, order := range []string{open, shipped, cancelled} {
			tag := s.order(order).Header.Get("ETag")
			for _, ask := range questions(tag) {
				if ask.staff && stranger.staff {
					continue
				}
				want, got := ask.of(stranger.caller, none), ask.of(stranger.caller, order)
				require.Equal(t, want, got, "%s: %s %s with %q", name, ask.method, ask.path, ask.headers)
				require.NotEqual(t, http.StatusOK, got.status)
			}
		}
	}
	require.Zero(t, s.Count(t, `idempotency_keys WHERE actor_id = 'mallory' OR tenant_id = 'acme'`), "a denied request spent its key")
	require.True(t, strings.HasPrefix(s.order(open).Text("shipping_address.line1"), "1 High Street"))
	requireStatus(t, http.StatusOK, s.order(open))
}

// question is one request about an order, whose id is put in place of {}.
type question struct {
	method, path, body string
	headers            []string
	staff              bool
}

// questions is every operation on an order, with every kind of precondition.
func questions(tag string) []question {
	operations := []question{
		{method: "GET", path: ""}, {method: "HEAD", path: ""}, {method: "GET", path: "/payment"}, {method: "HEAD", path: "/payment"},
		{method: "PUT", path: "/shipping-address", body: testkit.Address},
		{method: "PUT", path: "/shipping-address", body: `{"name":1}`},
		{method: "POST", path: "/cancellation", body: `{}`, headers: []string{"Idempotency-Key", "k1"}},
		{method: "POST", path: "/shipment", body: parcel("JD01"), staff: true},
		{method: "POST", path: "/refunds", body: `{"amount":{"amount":1,"currency":"EUR"}}`, headers: []string{"Idempotency-Key", "k1"}, staff: true},
		{method: "POST", path: "/refunds", body: `{"amount":{"amount":999999,"currency":"USD"}}`, headers: []string{"Idempotency-Key", "k2"}, staff: true},
	}
	preconditions := [][]string{
		nil, {"If-Match", tag}, {"If-Match", `"stale"`}, {"If-Match", "W/" + tag}, {"If-Match", `"a", ` + tag}, {"If-Match", "*"},
		{"If-Match", "no tag"}, {"If-None-Match", tag}, {"If-None-Match", "*"}, {"If-None-Match", "W/" + tag},
	}
	var all []question
	for _, q := range operations {
		for _, p := range preconditions {
			asked := q
			asked.headers = slices.Concat(q.headers, p)
			all = append(all, asked)
		}
	}
	return all
}

// told is what an answer tells, without what tells requests apart: the path, the trace and the time.
type told struct {
	status  int
	headers []string
	body    string
}

func (q question) of(c *testkit.Caller, order string) told {
	a := send(c, q.method, "/v1/orders/"+order+q.path, q.body, q.headers...)
	var headers []string
	for name, values := range a.Header {
		if !slices.Contains([]string{"Date", "Request-Id", "Traceparent"}, name) {
			headers = append(headers, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(headers)
	var problem map[string]any
	_ = json.Unmarshal(a.Body, &problem)
	delete(problem, "trace_id")
	delete(problem, "instance")
	body, _ := json.Marshal(problem)
	return told{a.Status, headers, string(body)}
}
