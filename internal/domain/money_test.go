package domain_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/orders/internal/domain"
)

func eur(amount int64) domain.Money { return domain.Money{Amount: amount, Currency: "EUR"} }

// Ensure sums and differences are exact up to the edges of int64 and refused beyond them.
func TestMoneySumsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	const least, most = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name string
		got  func() (domain.Money, error)
		want int64
		err  error
	}{
		{"add", func() (domain.Money, error) { return eur(2).Add(eur(3)) }, 5, nil},
		{"add nothing to the most", func() (domain.Money, error) { return eur(most).Add(eur(0)) }, most, nil},
		{"add up to the most", func() (domain.Money, error) { return eur(most - 1).Add(eur(1)) }, most, nil},
		{"add beyond the most", func() (domain.Money, error) { return eur(most).Add(eur(1)) }, 0, domain.ErrOverflow},
		{"add the most twice", func() (domain.Money, error) { return eur(most).Add(eur(most)) }, 0, domain.ErrOverflow},
		{"add down to the least", func() (domain.Money, error) { return eur(least + 1).Add(eur(-1)) }, least, nil},
		{"add below the least", func() (domain.Money, error) { return eur(least).Add(eur(-1)) }, 0, domain.ErrOverflow},
		{"add the least and the most", func() (domain.Money, error) { return eur(least).Add(eur(most)) }, -1, nil},
		{"sub", func() (domain.Money, error) { return eur(2).Sub(eur(3)) }, -1, nil},
		{"sub down to the least", func() (domain.Money, error) { return eur(-2).Sub(eur(most)) }, 0, domain.ErrOverflow},
		{"sub to exactly the least", func() (domain.Money, error) { return eur(-1).Sub(eur(most)) }, least, nil},
		{"sub the least from nothing", func() (domain.Money, error) { return eur(0).Sub(eur(least)) }, 0, domain.ErrOverflow},
		{"sub the least from a debt", func() (domain.Money, error) { return eur(-1).Sub(eur(least)) }, most, nil},
		{"add another currency", func() (domain.Money, error) { return eur(1).Add(domain.Money{Amount: 1, Currency: "USD"}) }, 0, domain.ErrCurrencies},
		{"sub another currency", func() (domain.Money, error) { return eur(1).Sub(domain.Money{Amount: least, Currency: "USD"}) }, 0, domain.ErrCurrencies},
	} {
		got, err := c.got()
		require.ErrorIs(t, err, c.err, c.name)
		if c.err == nil {
			require.Equal(t, eur(c.want), got, c.name)
		}
	}
}

// Ensure a product of price and quantity is exact or refused, and never negative.
func TestMoneyProductsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	_, err := eur(-5).Times(0)
	require.ErrorIs(t, err, domain.ErrOverflow)
	for _, c := range []struct {
		amount, count, want int64
		fits                bool
	}{
		{1999, 2, 3998, true},
		{0, math.MaxInt64, 0, true},
		{math.MaxInt64, 0, 0, true},
		{math.MaxInt64, 1, math.MaxInt64, true},
		{1, math.MaxInt64, math.MaxInt64, true},
		{math.MaxInt64 / 7, 7, math.MaxInt64, true}, // 7 divides 2^63-1
		{math.MaxInt64, 2, 0, false},
		{1 << 32, 1 << 31, 0, false}, // 2^63, one too many
		{1 << 32, 1 << 32, 0, false}, // 2^64, which wraps to 0
		{math.MaxInt64, math.MaxInt64, 0, false},
		{-1, 1, 0, false},
		{1, -1, 0, false},
		{math.MinInt64, math.MinInt64, 0, false},
	} {
		got, err := eur(c.amount).Times(c.count)
		if !c.fits {
			require.ErrorIs(t, err, domain.ErrOverflow, "%d × %d", c.amount, c.count)
			continue
		}
		require.NoError(t, err, "%d × %d", c.amount, c.count)
		require.Equal(t, eur(c.want), got)
	}
}

// Ensure checked arithmetic agrees with arithmetic that has no bounds.
func TestMoneyAgreesWithBigIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		sameAsBig(t, "add", new(big.Int).Add(x, y), func() (domain.Money, error) { return eur(a).Add(eur(b)) })
		sameAsBig(t, "sub", new(big.Int).Sub(x, y), func() (domain.Money, error) { return eur(a).Sub(eur(b)) })
		if a >= 0 && b >= 0 {
			sameAsBig(t, "times", new(big.Int).Mul(x, y), func() (domain.Money, error) { return eur(a).Times(b) })
		}
	})
}

func sameAsBig(t *rapid.T, name string, want *big.Int, got func() (domain.Money, error)) {
	m, err := got()
	if !want.IsInt64() {
		require.ErrorIs(t, err, domain.ErrOverflow, name)
		return
	}
	require.NoError(t, err, name)
	require.Equal(t, want.Int64(), m.Amount, name)
}

// Ensure a currency is an ISO 4217 code in capitals and nothing else.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	for code, valid := range map[string]bool{
		"EUR": true, "USD": true, "JPY": true, "CHF": true,
		"eur": false, "Eur": false, "": false, "EU": false, "EURO": false, "ABC": false, "E R": false, "EUR ": false,
		"ÉUR": false, "EU\x00": false, "123": false, "UR ": false, "AAA": false,
		"DEM": false, "XAU": false, "XXX": false, "XTS": false, // of the past, or no money
		"KWD": true, "ISK": false, "UGX": false, // no minor unit, yet counted in hundredths by the provider
	} {
		require.Equal(t, valid, domain.ValidCurrency(code), "%q", code)
	}
}

// Ensure amounts that the provider cannot move or charge are told apart before anything is promised.
func TestChargeableAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount              int64
		currency            string
		payable, chargeable bool
	}{
		{50, "EUR", true, true}, {49, "EUR", true, false}, {1, "EUR", true, false}, {0, "EUR", false, false},
		{-50, "EUR", false, false}, {99_999_999, "EUR", true, true}, {100_000_000, "EUR", false, false},
		{50, "JPY", true, true}, {49, "JPY", true, false}, {17500, "HUF", true, true}, {17499, "HUF", true, false},
		{1000, "KWD", true, true}, {1005, "KWD", false, false}, {1, "XOF", true, true},
	} {
		m := domain.Money{Amount: c.amount, Currency: c.currency}
		require.Equal(t, c.payable, m.Payable(), "%v", m)
		require.Equal(t, c.chargeable, m.Chargeable(), "%v", m)
	}
}
