package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// productBody is a product with a price in cents.
func productBody(cents int) string {
	return fmt.Sprintf(`{"name":"Lamp at %d","price":{"amount":%d,"currency":"EUR"},"active":true}`, cents, cents)
}

// edit sets a product's price under a version; create makes it. Both may be called by any goroutine.
func (s shop) edit(sku, tag string, cents int) testkit.Answer {
	return put(s.alice, "/v1/products/"+sku, productBody(cents), "If-Match", tag)
}

func (s shop) create(sku string, cents int) testkit.Answer {
	return put(s.alice, "/v1/products/"+sku, productBody(cents), "If-None-Match", "*")
}

func (s shop) product(sku string) testkit.Answer { return s.alice.Get("/v1/products/" + sku) }

// Ensure one editor's price is never silently lost: of two edits of one version the first wins, in both orders, whether
// it has compared already or not.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictProductEditAgainstProductEdit(t *testing.T) {
	t.Parallel()
	s := openPausing(t)
	row := func() *testkit.Held {
		return s.Begin(t).Exec(`SELECT FROM products WHERE tenant_id = 'default' AND sku = $1 FOR UPDATE`, shopSKU)
	}
	for _, held := range []func() *testkit.Held{row, s.pausing} {
		for _, prices := range [][2]int{{100, 200}, {200, 100}} {
			before := s.version("products", "sku", shopSKU)
			tag := s.product(shopSKU).Header.Get("ETag")
			won, lost := s.inOrder(held(),
				func() testkit.Answer { return s.edit(shopSKU, tag, prices[0]) },
				func() testkit.Answer { return s.edit(shopSKU, tag, prices[1]) })
			requireStatus(t, http.StatusOK, won)
			requireRefused(t, lost, http.StatusConflict, "version_conflict")
			stored := s.product(shopSKU)
			require.EqualValues(t, prices[0], stored.Number("price.amount"))
			require.Equal(t, won.Header.Get("ETag"), stored.Header.Get("ETag"))
			require.Equal(t, before+1, s.version("products", "sku", shopSKU))
		}
	}
}

// Ensure of twenty edits of one version exactly one is accepted.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
func TestConflictTwentyEditorsWithOneVersionOfAProduct(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tag := s.product(shopSKU).Header.Get("ETag")
	winner := requireOneOf(t, 20, func(i int) testkit.Answer { return s.edit(shopSKU, tag, 100+i) })
	require.Equal(t, winner.Number("price.amount"), s.product(shopSKU).Number("price.amount"))
	require.EqualValues(t, 2, s.version("products", "sku", shopSKU))
}

// Ensure of two creations of one sku the first wins, in both orders, and the other is told that the product exists.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictProductCreationAgainstProductCreation(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for i, prices := range [][2]int{{100, 200}, {200, 100}} {
		sku := fmt.Sprintf("LAMP-%03d", i)
		ahead := s.Begin(t).Exec(`INSERT INTO products VALUES ('default', $1, 'x', 1, 'EUR', true, now(), now(), 1)`, sku)
		won, lost := s.inOrder(ahead,
			func() testkit.Answer { return s.create(sku, prices[0]) },
			func() testkit.Answer { return s.create(sku, prices[1]) })
		// Requests that wait for a key that is rolled back race for it again. Either may win, but only one does, and it is stored.
		if won.Status != http.StatusCreated {
			won, lost = lost, won
		}
		requireStatus(t, http.StatusCreated, won)
		requireRefused(t, lost, http.StatusConflict, "product_exists")
		stored := s.product(sku)
		require.Equal(t, won.Number("price.amount"), stored.Number("price.amount"))
		require.Equal(t, won.Header.Get("ETag"), stored.Header.Get("ETag"))
		require.Zero(t, s.OnHand(t, sku))
	}
}

// Ensure of twenty creations of one sku one is accepted, with one stock, and the others are told that it exists.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictTwentyCreationsOfOneProduct(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	created := 0
	for _, a := range testkit.Receive(testkit.Together(20, func(i int) testkit.Answer { return s.create("LAMP-001", 100+i) }), 20) {
		if a.Status == http.StatusCreated {
			created++
			require.Equal(t, "/v1/products/LAMP-001", a.Header.Get("Location"))
			require.Equal(t, s.product("LAMP-001").Number("price.amount"), a.Number("price.amount"))
			continue
		}
		requireRefused(t, a, http.StatusConflict, "product_exists")
	}
	require.Equal(t, 1, created)
	require.Equal(t, 1, s.Count(t, `stock WHERE sku = 'LAMP-001'`))
}

// Ensure a product is created once, edited with the tag that it has, and not edited before it exists; and that its sale
// and its stock leave that tag alone.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
func TestConflictProductLife(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	requireRefused(t, s.edit("LAMP-001", s.product(shopSKU).Header.Get("ETag"), 100), http.StatusNotFound, "product_not_found")
	created := s.create("LAMP-001", 100)
	requireStatus(t, http.StatusCreated, created)
	requireRefused(t, s.create("LAMP-001", 200), http.StatusConflict, "product_exists")
	tag := created.Header.Get("ETag")
	require.Equal(t, tag, s.product("LAMP-001").Header.Get("ETag"))

	s.adjust("LAMP-001", 5)
	s.alice.Place("k1", testkit.OrderBody("pm_card_visa", "LAMP-001", "2"))
	require.Equal(t, tag, s.product("LAMP-001").Header.Get("ETag"), "a sale made an editor's version stale")
	edited := s.edit("LAMP-001", tag, 150)
	requireStatus(t, http.StatusOK, edited)
	requireRefused(t, s.edit("LAMP-001", tag, 160), http.StatusConflict, "version_conflict")
	require.EqualValues(t, 150, s.product("LAMP-001").Number("price.amount"))
	requireStatus(t, http.StatusOK, s.edit("LAMP-001", edited.Header.Get("ETag"), 170))
}

// Ensure an order keeps the price that it was placed at, whichever of the edit and the order comes first, and that
// neither is refused for the other's sake.
func TestConflictPriceEditAgainstOrder(t *testing.T) {
	t.Parallel()
	s := openPausing(t)
	body := testkit.OrderBody("pm_card_visa", shopSKU, "1", shopSKU, "1")
	order := func(key string) func() testkit.Answer {
		return func() testkit.Answer { return place(s.alice, key, body) }
	}
	editTo := func(cents int) func() testkit.Answer {
		tag := s.product(shopSKU).Header.Get("ETag")
		return func() testkit.Answer { return s.edit(shopSKU, tag, cents) }
	}

	// The order has read its prices and waits for the stock; the edit commits in the meantime.
	held := s.HoldStock(t, shopSKU)
	startOrder, placed := later(order("k1"))
	startOrder()
	s.AwaitBlockedOn(t, "stock")
	requireStatus(t, http.StatusOK, editTo(100)())
	held.Rollback()
	first := placed()
	requireStatus(t, http.StatusCreated, first)
	require.EqualValues(t, shopTotal, first.Number("total.amount"))

	// The edit has compared and waits before its save; the order commits in the meantime.
	paused := s.pausing()
	startEdit, edited := later(editTo(900))
	startEdit()
	s.AwaitBlocked(t, 1)
	second := order("k2")()
	requireStatus(t, http.StatusCreated, second)
	require.EqualValues(t, 200, second.Number("total.amount"))
	paused.Rollback()
	requireStatus(t, http.StatusOK, edited())
	require.EqualValues(t, 200, s.order(second.Text("id")).Number("total.amount"))
}
