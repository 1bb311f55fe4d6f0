package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a conditional read answers 304 with the tag and without a body exactly when nothing has changed, and that HEAD
// tells what GET would, without a body.
func TestBoundaryConditionalReads(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	for _, path := range []string{"/v1/orders/" + order, "/v1/orders/" + order + "/payment", "/v1/products/" + shopSKU} {
		get := s.alice.Get(path)
		tag := get.Header.Get("ETag")
		for value, same := range map[string]bool{
			tag: true, "W/" + tag: true, `"x", W/` + tag: true, "*": true, " " + tag + " ,": true,
			`"x"`: false, `W/"x"`: false, ",": false,
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := s.alice.Do(method, path, "", "If-None-Match", value)
				require.Equal(t, map[bool]int{true: http.StatusNotModified, false: http.StatusOK}[same], a.Status, "%s %s", method, value)
				require.Equal(t, tag, a.Header.Get("ETag"))
				require.Equal(t, get.Header.Get("Cache-Control"), a.Header.Get("Cache-Control"))
				require.Equal(t, method == http.MethodGet && !same, len(a.Body) > 0, "%s %s", method, value)
			}
		}
		several := s.alice.Get(path, "If-None-Match", `"x"`, "If-None-Match", tag)
		requireStatus(t, http.StatusNotModified, several)
		requireRefused(t, s.alice.Get(path, "If-None-Match", "x"), http.StatusBadRequest, "invalid_precondition")
		require.Contains(t, get.Header.Get("Cache-Control"), "private")
	}
	for _, path := range []string{"/v1/orders/" + uuid.NewString(), "/v1/products/NONE-001", "/v1/orders/x"} {
		get, head := s.alice.Get(path, "If-None-Match", "*"), s.alice.Do(http.MethodHead, path, "", "If-None-Match", "*")
		require.Equal(t, get.Status, head.Status)
		require.Equal(t, get.Header.Get("Content-Type"), head.Header.Get("Content-Type"))
		require.Empty(t, head.Body)
	}
}

// Ensure what a good client may send is accepted: a charset, a body of exactly 64 KiB, one without a length, any script.
func TestBoundaryUnusualButGoodRequests(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	body := testkit.OrderBody("pm_card_visa", shopSKU, "1")
	exactly := strings.TrimSuffix(body, "}") + strings.Repeat(" ", 64<<10-len(body)) + "}"
	require.Len(t, exactly, 64<<10)
	for name, r := range map[string]struct {
		body  io.Reader
		media string
	}{
		"a charset":      {strings.NewReader(body), "application/json; charset=utf-8"},
		"capitals":       {strings.NewReader(body), "Application/JSON"},
		"64 KiB":         {strings.NewReader(exactly), "application/json"},
		"in chunks":      {io.MultiReader(strings.NewReader(body)), "application/json"},
		"64K, in chunks": {io.MultiReader(strings.NewReader(exactly)), "application/json"},
	} {
		request, err := http.NewRequest(http.MethodPost, s.URL+"/v1/orders", r.body)
		require.NoError(t, err)
		request.Header.Set("Authorization", "bearer "+s.alice.Token) // the scheme has no case
		request.Header.Set("Content-Type", r.media)
		request.Header.Set("Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
		response, err := s.alice.HTTP.Do(request)
		require.NoError(t, err)
		raw, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusCreated, response.StatusCode, "%s: %s", name, raw)
	}

	names := []string{"Zoë O’Neill-Šmíd", "王小明", "👩‍🚀", "مريم", `"quoted" \ <script>`, "'; DROP TABLE orders; --", "\u2028", "\ufffd"}
	for _, name := range names {
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		order := s.place("pm_card_visa")
		address := strings.Replace(testkit.Address, `"Alice Ames"`, string(quoted), 1)
		if name == "\u2028" { // nothing but white space
			requireRefused(t, put(s.alice, "/v1/orders/"+order+"/shipping-address", address, "If-Match", s.order(order).Header.Get("ETag")),
				http.StatusBadRequest, "validation_failed")
			continue
		}
		requireStatus(t, http.StatusOK, put(s.alice, "/v1/orders/"+order+"/shipping-address", address, "If-Match", s.order(order).Header.Get("ETag")))
		require.Equal(t, name, s.order(order).Text("shipping_address.name"))
		requireStatus(t, http.StatusOK, s.cancel(order))
	}
}

// Ensure a body that may be left out may be left out: with or without saying that it is empty. An empty body of which it is
// not known that it is one comes from clients that stream.
func TestBoundaryCancellationWithoutABody(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for name, length := range map[string]int64{"none": 0, "empty, in chunks": -1} {
		order := s.place("pm_card_visa")
		request, err := http.NewRequest(http.MethodPost, s.URL+"/v1/orders/"+order+"/cancellation", io.MultiReader())
		require.NoError(t, err)
		request.ContentLength = length
		request.Header.Set("Authorization", "Bearer "+s.alice.Token)
		request.Header.Set("Idempotency-Key", uuid.NewString())
		request.Header.Set("If-Match", s.order(order).Header.Get("ETag"))
		response, err := s.alice.HTTP.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, name)
		require.Equal(t, "cancelled", s.order(order).Text("status"))
	}
}

// Ensure tokens of the real mint are checked: one that has expired, one without the scope, one without a subject.
func TestBoundaryTokensOfTheMint(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	old := s.As(t, "alice")
	var err error
	old.Token, err = s.Sandbox.Token("alice", "default", testkit.AllScopes, -time.Hour)
	require.NoError(t, err)
	a := old.Get("/v1/orders")
	requireRefused(t, a, http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, `Bearer realm="orders", error="invalid_token"`, a.Header.Get("WWW-Authenticate"))
	old.Token = s.alice.Token[:len(s.alice.Token)-4] + "AAAA"
	requireRefused(t, old.Get("/v1/orders"), http.StatusUnauthorized, "unauthenticated")
	requireRefused(t, s.AsOf(t, "alice", "default", "orders:write").Get("/v1/orders"), http.StatusForbidden, "forbidden")
}

// Ensure a request that cannot be finished in time is told to come back, in words that tell nothing of why, and that
// nothing was applied.
func TestBoundaryBusyRowsAnswerTryAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, "DB_LOCK_TIMEOUT", "50ms")
	order := s.place("pm_card_visa")
	tag := s.order(order).Header.Get("ETag")
	product := s.product(shopSKU).Header.Get("ETag")
	held := s.hold("orders", order).
		Exec(`SELECT FROM payments WHERE tenant_id = 'default' FOR UPDATE`).
		Exec(`SELECT FROM products WHERE tenant_id = 'default' FOR UPDATE`).
		Exec(`SELECT FROM stock WHERE tenant_id = 'default' FOR UPDATE`)
	for _, m := range []move{redirect("2 Low Street"), shipment("JD01"), cancellation("too slow")} {
		requireTryAgain(t, m.send(s, order, tag))
	}
	requireTryAgain(t, s.edit(shopSKU, product, 100))
	requireTryAgain(t, s.adjusting(shopSKU, 1))
	requireTryAgain(t, s.refund(order, "k2", 100))
	requireTryAgain(t, place(s.alice, "k1", testkit.OrderBody("pm_card_visa", shopSKU, "1")))
	held.Rollback()
	require.Equal(t, 1, s.Count(t, "idempotency_keys"))
	require.EqualValues(t, 1, s.version("orders", "id", order))
	requireStatus(t, http.StatusOK, redirect("2 Low Street").send(s, order, tag))
}

func requireTryAgain(t testing.TB, a testkit.Answer) {
	t.Helper()
	requireRefused(t, a, http.StatusServiceUnavailable, "try_again")
	require.Regexp(t, `^[1-9][0-9]*$`, a.Header.Get("Retry-After"))
}
