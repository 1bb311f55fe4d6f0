package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// listed is one page of a list.
type listed struct {
	Items []struct{ ID, SKU, Status string }
	Page  struct {
		Limit      int
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	}
}

// page reads a page. query is key and value in turn.
func page(t testing.TB, c *testkit.Caller, path string, query ...string) (l listed) {
	t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			values.Set(query[i], query[i+1])
		}
	}
	a := c.Get(path + "?" + values.Encode())
	require.Equal(t, http.StatusOK, a.Status, string(a.Body))
	require.NoError(t, json.Unmarshal(a.Body, &l))
	require.Equal(t, l.Page.HasMore, l.Page.NextCursor != nil)
	return l
}

// walk reads all pages, calls between after each, and returns the items in the order in which they came.
func walk(t testing.TB, c *testkit.Caller, path string, between func(), query ...string) (names []string) {
	t.Helper()
	cursor := ""
	for {
		l := page(t, c, path, append([]string{"after", cursor}, query...)...)
		for _, item := range l.Items {
			names = append(names, item.ID+item.SKU)
		}
		if !l.Page.HasMore {
			return names
		}
		require.Len(t, l.Items, l.Page.Limit, "a page that is not the last is full")
		require.Less(t, len(names), 100, "the pages do not end")
		cursor = *l.Page.NextCursor
		between()
	}
}

// Ensure pages of orders come newest first, each order once, and stay where they are while new orders are placed.
func TestBoundaryPagesOfOrdersStayStableWhileOrdersArePlaced(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.adjust(shopSKU, 100)
	var placed []string
	for range 7 {
		placed = append(placed, s.place("pm_card_visa"))
	}
	newest := slices.Clone(placed)
	slices.Reverse(newest)
	for _, limit := range []string{"1", "2", "3", "7", "100", ""} {
		require.Equal(t, newest, walk(t, s.alice, "/v1/orders", func() {}, "limit", limit))
	}
	got := walk(t, s.alice, "/v1/orders", func() { s.place("pm_card_visa") }, "limit", "2")
	require.Equal(t, newest, got, "orders placed in between moved the pages")
	require.Equal(t, 20, page(t, s.alice, "/v1/orders").Page.Limit)
}

// Ensure a list shows exactly what its reader may see: a customer its own orders, an admin those of its tenant, and
// no reader those of another tenant, even with a cursor of another reader.
func TestBoundaryListsShowWhatTheReaderMaySee(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.ProductOf(t, "acme", shopSKU, 100, 10)
	bob, admin := s.As(t, "bob"), s.AsOf(t, "carol", "default", "orders:read orders:admin")
	acme, acmeAdmin := s.AsOf(t, "alice", "acme", testkit.AllScopes), s.AsOf(t, "carol", "acme", "orders:read orders:admin")
	body := testkit.OrderBody("pm_card_visa", shopSKU, "1")
	a1, b1, a2, c1 := s.alice.Place("k1", body), bob.Place("k1", body), s.alice.Place("k2", body), acme.Place("k1", body)

	all := func(c *testkit.Caller) []string { return walk(t, c, "/v1/orders", func() {}, "limit", "1") }
	require.Equal(t, []string{a2, a1}, all(s.alice))
	require.Equal(t, []string{b1}, all(bob))
	require.Equal(t, []string{a2, b1, a1}, all(admin))
	require.Equal(t, []string{c1}, all(acme))
	require.Equal(t, []string{c1}, all(acmeAdmin))
	require.Empty(t, all(s.AsOf(t, "dave", "default", "orders:read")))

	cursor := page(t, s.alice, "/v1/orders", "limit", "1").Page.NextCursor
	require.Empty(t, page(t, acmeAdmin, "/v1/orders", "after", *cursor).Items)
	require.Equal(t, b1, page(t, bob, "/v1/orders", "after", *cursor).Items[0].ID)
	for _, c := range []*testkit.Caller{bob, acme, acmeAdmin} {
		requireRefused(t, c.Get("/v1/orders/"+a1), http.StatusNotFound, "order_not_found")
		requireRefused(t, c.Get("/v1/orders/"+a1+"/payment"), http.StatusNotFound, "order_not_found")
	}
	requireStatus(t, http.StatusOK, admin.Get("/v1/orders/"+a1))
}

// Ensure the status filter selects, on every page.
func TestBoundaryOrdersAreFilteredByStatus(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	byStatus := map[string][]string{}
	for i := range 4 {
		order := s.placePaid("pm_card_visa")
		status := []string{"cancelled", "open"}[i%2]
		if status == "cancelled" {
			requireStatus(t, http.StatusOK, s.cancel(order))
		}
		byStatus[status] = append([]string{order}, byStatus[status]...)
	}
	shipped := byStatus["open"][0]
	requireStatus(t, http.StatusOK, shipment("JD01").send(s, shipped, s.order(shipped).Header.Get("ETag")))
	byStatus["shipped"], byStatus["open"] = []string{shipped}, byStatus["open"][1:]
	for status, want := range byStatus {
		require.Equal(t, want, walk(t, s.alice, "/v1/orders", func() {}, "limit", "1", "status", status), status)
	}
}

// Ensure pages of products come in order of sku, whatever the database's collation, filtered by what is for sale.
func TestBoundaryPagesOfProducts(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	want := []string{shopSKU}
	for _, sku := range []string{"A", "A-1", "A0", "AA", "B", "0", "Z-9"} {
		s.Product(t, sku, 100, 0)
		want = append(want, sku)
	}
	slices.Sort(want)
	require.Equal(t, want, walk(t, s.alice, "/v1/products", func() {}, "limit", "3"))
	body := `{"name":"Off","price":{"amount":100,"currency":"EUR"},"active":false}`
	requireStatus(t, http.StatusOK, put(s.alice, "/v1/products/B", body, "If-Match", s.product("B").Header.Get("ETag")))
	require.Equal(t, []string{"B"}, walk(t, s.alice, "/v1/products", func() {}, "status", "inactive"))
	require.NotContains(t, walk(t, s.alice, "/v1/products", func() {}, "status", "active", "limit", "2"), "B")
	require.Empty(t, walk(t, s.AsOf(t, "alice", "acme", testkit.AllScopes), "/v1/products", func() {}))
}

// Ensure a cursor is bound to its list: that of another, one that was made up and one that was changed are refused.
func TestBoundaryForeignCursors(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "ABCDEFGHIJKLMNOP", 100, 0) // as long as an order's id
	s.Product(t, "ZZZ", 100, 0)
	s.place("pm_card_visa")
	s.place("pm_card_visa")
	orders := *page(t, s.alice, "/v1/orders", "limit", "1").Page.NextCursor
	products := *page(t, s.alice, "/v1/products", "limit", "1").Page.NextCursor
	for path, cursors := range map[string][]string{
		"/v1/orders":   {products, orders + "A", orders[1:], orders + "=", " " + orders, uuid.NewString(), "\x00", "é"},
		"/v1/products": {orders, products + "A", products[1:], "ABCDEFGHIJKLMNOP", fmt.Sprint(1), "'; DROP TABLE orders; --"},
	} {
		for _, cursor := range cursors {
			a := s.alice.Get(path + "?after=" + url.QueryEscape(cursor))
			requireRefused(t, a, http.StatusBadRequest, "invalid_cursor")
		}
	}
}
