package e2e

import (
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// adjusting changes a stock. It may be called by any goroutine; the caller keeps the books.
func (s shop) adjusting(sku string, delta any) testkit.Answer {
	return post(s.alice, "/v1/products/"+sku+"/stock-adjustments", uuid.NewString(), fmt.Sprintf(`{"delta":%v}`, delta))
}

// adjust changes a stock, and the test's books with it.
func (s shop) adjust(sku string, delta int64) testkit.Answer {
	s.t.Helper()
	a := s.adjusting(sku, delta)
	requireStatus(s.t, http.StatusOK, a)
	s.Stocked(s.t, "default", sku, delta)
	return a
}

// Ensure forty buyers of thirty lamps get thirty lamps, ten are told that there are none left, and no buyer gets a
// version conflict: concurrent sales wait for each other.
//
// Standard: litespec/ext/concurrency#limit-version-checks
func TestConflictFortyBuyersForThirtyLamps(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "LAMP-001", 4500, 30)
	buyers := make([]*testkit.Caller, 40)
	for i := range buyers {
		buyers[i] = s.As(t, fmt.Sprintf("buyer-%d", i))
	}
	held := s.HoldStock(t, "LAMP-001")
	placed := testkit.Together(len(buyers), func(i int) testkit.Answer {
		return place(buyers[i], "k1", testkit.OrderBody("pm_card_visa", "LAMP-001", "1"))
	})
	s.AwaitBlocked(t, 8) // as many as the pool has connections: all buyers are at it
	held.Rollback()
	sold := 0
	for _, a := range testkit.Receive(placed, len(buyers)) {
		if a.Status == http.StatusCreated {
			sold++
			continue
		}
		requireRefused(t, a, http.StatusConflict, "insufficient_stock")
	}
	require.Equal(t, 30, sold)
	require.Zero(t, s.OnHand(t, "LAMP-001"))
	require.Equal(t, 30, s.Count(t, "orders"))
	require.Equal(t, 30, s.Count(t, "idempotency_keys"), "a refused buyer's key was spent")
}

// Ensure twenty concurrent adjustments all count, although none states a version.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
// Standard: litespec/ext/concurrency#limit-version-checks
func TestConflictConcurrentAdjustmentsAddUp(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "SAND-001", 1, 100) // enough for them in any order
	held := s.HoldStock(t, "SAND-001")
	adjusted := testkit.Together(20, func(i int) testkit.Answer { return s.adjusting("SAND-001", i-5) })
	s.AwaitBlocked(t, 8)
	held.Rollback()
	sum := int64(0)
	for _, a := range testkit.Receive(adjusted, 20) {
		if a.Status == http.StatusBadRequest { // the one whose delta is zero
			require.Equal(t, "validation_failed", a.Code())
			continue
		}
		requireStatus(t, http.StatusOK, a)
	}
	for i := range 20 {
		sum += int64(i - 5)
	}
	s.Stocked(t, "default", "SAND-001", sum)
	require.Equal(t, 100+sum, s.OnHand(t, "SAND-001"))
	require.EqualValues(t, 1+19, s.version("stock", "sku", "SAND-001"))
}

// Ensure twenty adjustments that together take more than there is take what there is, and never more.
func TestConflictConcurrentAdjustmentsStopAtZero(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	taken := int64(0)
	for _, a := range testkit.Receive(testkit.Together(20, func(int) testkit.Answer { return s.adjusting(shopSKU, -3) }), 20) {
		if a.Status == http.StatusOK {
			taken += 3
			continue
		}
		requireRefused(t, a, http.StatusConflict, "insufficient_stock")
	}
	s.Stocked(t, "default", shopSKU, -taken)
	require.EqualValues(t, 9, taken)
	require.EqualValues(t, 1, s.OnHand(t, shopSKU))
}

// Ensure a bad adjustment is refused and changes nothing: nothing at all, below zero, beyond what can be counted.
func TestConflictBadAdjustments(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "SAND-001", 1, math.MaxInt64-5)
	for _, c := range []struct {
		sku    string
		delta  any
		status int
		code   string
	}{
		{shopSKU, 0, http.StatusBadRequest, "validation_failed"},
		{shopSKU, "-0", http.StatusBadRequest, "validation_failed"},
		{shopSKU, -shopStock - 1, http.StatusConflict, "insufficient_stock"},
		{shopSKU, -1_000_000, http.StatusConflict, "insufficient_stock"},
		{shopSKU, -1_000_001, http.StatusBadRequest, "validation_failed"},
		{shopSKU, "-9223372036854775808", http.StatusBadRequest, "validation_failed"},
		{"SAND-001", 6, http.StatusBadRequest, "validation_failed"},
		{"SAND-001", 1_000_000, http.StatusBadRequest, "validation_failed"},
		{"NONE-001", 1, http.StatusNotFound, "product_not_found"},
	} {
		requireRefused(t, s.adjusting(c.sku, c.delta), c.status, c.code)
	}
	require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
	require.EqualValues(t, 1, s.version("stock", "sku", shopSKU))
	require.Zero(t, s.Count(t, "idempotency_keys"))
	s.adjust("SAND-001", 5)
	require.EqualValues(t, math.MaxInt64, s.alice.Get("/v1/products/SAND-001/stock").Number("on_hand"))
	s.adjust(shopSKU, -shopStock)
}
