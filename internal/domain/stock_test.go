package domain_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

func stockOf(units int64) *domain.Stock {
	return domain.RestoreStock(domain.StockState{Tenant: "default", SKU: "TEA-001", OnHand: units, UpdatedAt: noon(), Version: 3})
}

// Ensure stock never falls below zero nor leaves int64, and that a refused change leaves it as it was.
func TestStockIsAdjustedOrRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		onHand, delta, want int64
		code                domain.Code
	}{
		{10, 5, 15, ""},
		{10, -10, 0, ""},
		{10, -11, 0, domain.CodeInsufficientStock},
		{0, -1, 0, domain.CodeInsufficientStock},
		{math.MaxInt64 - 1, 1, math.MaxInt64, ""},
		{math.MaxInt64, 1, 0, domain.CodeValidationFailed},
		{math.MaxInt64, math.MaxInt64, 0, domain.CodeValidationFailed},
		{math.MaxInt64, math.MinInt64, 0, domain.CodeInsufficientStock},
		{0, math.MinInt64, 0, domain.CodeInsufficientStock},
	} {
		k := stockOf(c.onHand)
		before := k.State()
		err := k.Adjust(c.delta, later(1))
		require.Equal(t, c.code, codeOf(err), "%d%+d", c.onHand, c.delta)
		if c.code != "" {
			require.Equal(t, before, k.State(), "a refused change changed something")
			continue
		}
		require.Equal(t, c.want, k.State().OnHand)
		require.Equal(t, later(1), k.State().UpdatedAt)
		require.Equal(t, before.Version, k.State().Version, "the version is the store's")
	}
}

// Ensure what an order reserves comes back whole.
func TestStockReservesAndReturns(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1_000_000, domain.MaxDelta, "as the contract says")
	k := stockOf(5)
	require.NoError(t, k.Reserve(5, later(1)))
	require.Zero(t, k.State().OnHand)
	require.Equal(t, domain.CodeInsufficientStock, codeOf(k.Reserve(1, later(2))))
	require.NoError(t, k.Reserve(0, later(2)))
	require.NoError(t, k.Return(0, later(2)))
	require.NoError(t, k.Return(5, later(3)))
	require.EqualValues(t, 5, k.State().OnHand)
}

// Ensure a negative quantity can neither be reserved, which would add stock, nor returned.
func TestStockMovesForwardOnly(t *testing.T) {
	t.Parallel()
	for _, units := range []int64{-1, math.MinInt64} {
		k := stockOf(5)
		require.Error(t, k.Reserve(units, later(1)))
		require.Error(t, k.Return(units, later(1)))
		require.EqualValues(t, 5, k.State().OnHand)
	}
}
