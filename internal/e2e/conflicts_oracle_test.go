package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/testkit"
)

// Ensure no answer reveals whether an order of another customer or another tenant exists, whatever is sent
// in If-Match, If-None-Match or the body: each answer equals that for an order that does not exist.
func TestConflictForeignOrdersAnswerLikeNoOrders(t *testing.T) {
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
			for _, ask := range questions(t, "{order_id}", tag) {
				if ask.staff && stranger.staff {
					continue
				}
				want, got := ask.of(stranger.caller, none), ask.of(stranger.caller, order)
				require.Equal(t, want, got, "%s: %s with %q", name, ask.ID, ask.headers)
				require.GreaterOrEqual(t, got.status, 400, "%s: %s with %q", name, ask.ID, ask.headers)
			}
		}
	}
	require.Zero(t, s.Count(t, `idempotency_keys WHERE actor_id = 'mallory' OR tenant_id = 'acme'`), "a denied request spent its key")
	require.True(t, strings.HasPrefix(s.order(open).Text("shipping_address.line1"), "1 High Street"))
	requireStatus(t, http.StatusOK, s.order(open))
}

// Ensure no answer reveals whether a product of another tenant exists, and no request changes it.
func TestConflictForeignProductsAnswerLikeNoProducts(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	acme := s.AsOf(t, "alice", "acme", testkit.AllScopes+" orders:admin")
	before := s.product(shopSKU)
	for _, ask := range questions(t, "{sku}", before.Header.Get("ETag")) {
		if ask.ID == "put-product" && slices.Contains(ask.headers, "If-None-Match") {
			continue // which makes a product of the asking tenant
		}
		want, got := ask.of(acme, "ALE-001"), ask.of(acme, shopSKU)
		require.Equal(t, want, got, "%s with %q", ask.ID, ask.headers)
		require.GreaterOrEqual(t, got.status, 400, "%s with %q", ask.ID, ask.headers)
	}
	require.Equal(t, before.Body, s.product(shopSKU).Body)
	require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
	require.Zero(t, s.Count(t, `idempotency_keys WHERE tenant_id = 'acme'`), "a denied request spent its key")
}

// Ensure an order takes the prices of its own tenant, where another one has a product of the same sku.
func TestConflictPricesAreThoseOfTheTenant(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.ProductOf(t, "acme", shopSKU, 100, 10)
	acme := s.AsOf(t, "alice", "acme", testkit.AllScopes)
	for c, total := range map[*testkit.Caller]int64{s.alice: shopTotal, acme: 200} {
		order := c.Place("k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
		require.Equal(t, total, c.Get("/v1/orders/"+order).Number("total.amount"))
	}
}

// Ensure the requests that the contract shows get as far as the order: with a good body and the order's tag, its own customer,
// as staff, is not told that there is none. Without this, the test above would prove nothing of an operation whose example
// is refused for another reason.
func TestConflictOwnOrdersAreFoundByEveryOperation(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.adjust(shopSKU, 100)
	for _, o := range testkit.Operations(t) {
		if !strings.Contains(o.Path, "{order_id}") {
			continue
		}
		order := s.place("pm_card_visa")
		ask := question{o, o.Body, []string{"If-Match", s.order(order).Header.Get("ETag"), "Idempotency-Key", order}, false}
		if !o.Keyed {
			ask.headers = ask.headers[:2]
		}
		got := ask.of(s.alice, order)
		require.True(t, got.status < 300 || got.status == http.StatusConflict || got.status == http.StatusPreconditionFailed,
			"%s answers %d: %s", o.ID, got.status, got.body)
	}
}

// question is one request about an order or a product, whose id is put in place of the path's parameter.
type question struct {
	testkit.Operation
	body    string
	headers []string
	staff   bool // whether its scope is enough for any order of the tenant
}

// questions is every operation of the contract whose path has the parameter, with every kind of precondition and with a
// body that is good and one that is not: a new operation is asked by itself.
func questions(t *testing.T, parameter, tag string) (all []question) {
	t.Helper()
	staff := map[string]bool{}
	for _, u := range app.UseCases() {
		staff[u.Operation] = u.Staff
	}
	preconditions := [][]string{
		nil, {"If-Match", tag}, {"If-Match", `"stale"`}, {"If-Match", "W/" + tag}, {"If-Match", `"a", ` + tag}, {"If-Match", "*"},
		{"If-Match", "no tag"}, {"If-None-Match", tag}, {"If-None-Match", "*"}, {"If-None-Match", "W/" + tag},
	}
	for _, o := range testkit.Operations(t) {
		if !strings.Contains(o.Path, parameter) {
			continue
		}
		bodies := []string{""}
		if o.Body != "" {
			bodies = []string{o.Body, `{"no_such_member":1}`}
		}
		for i, body := range bodies {
			for _, p := range preconditions {
				asked := question{o, body, p, staff[o.UseCase]}
				if o.Keyed {
					asked.headers = append([]string{"Idempotency-Key", "k" + strconv.Itoa(i)}, p...)
				}
				all = append(all, asked)
			}
		}
	}
	require.NotEmpty(t, all, "no operation on %s", parameter)
	return all
}

// told is what an answer tells, without what tells requests apart: the path, the trace and the time.
type told struct {
	status  int
	headers []string
	body    string
}

func (q question) of(c *testkit.Caller, id string) told {
	path := regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(q.Path, id)
	a := send(c, q.Method, path, q.body, q.headers...)
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
