package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

// noon is the time of tests; later(n) is n minutes after it.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

func later(minutes int) time.Time { return noon().Add(time.Duration(minutes) * time.Minute) }

// Ensure a sku is 1 to 64 capitals, digits and hyphens, and starts with no hyphen.
func TestSKUs(t *testing.T) {
	t.Parallel()
	for sku, valid := range map[string]bool{
		"TEA-001": true, "A": true, "0": true, "A-": true, strings.Repeat("A", 64): true,
		"": false, "-A": false, "tea": false, "A B": false, "A/B": false, "A\n": false, "\nA": false, "É": false,
		"A\x00": false, strings.Repeat("A", 65): false,
	} {
		require.Equal(t, valid, domain.ValidSKU(sku), "%q", sku)
	}
}

// Ensure a product's details are refused field by field.
func TestProductDetailsNameEachInvalidField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		details domain.ProductDetails
		want    map[string]string
	}{
		{"valid", domain.ProductDetails{Name: "Sencha", Price: eur(1)}, map[string]string{}},
		{"the shortest name", domain.ProductDetails{Name: "S", Price: eur(1)}, map[string]string{}},
		{"the longest name", domain.ProductDetails{Name: strings.Repeat("é", 200), Price: eur(1)}, map[string]string{}},
		{"a name too long", domain.ProductDetails{Name: strings.Repeat("é", 201), Price: eur(1)}, map[string]string{"name": "length"}},
		{"the highest price", domain.ProductDetails{Name: "Sencha", Price: eur(99_999_999)}, map[string]string{}},
		{"beyond it", domain.ProductDetails{Name: "Sencha", Price: eur(100_000_000)}, map[string]string{"price/amount": "range"}},
		{"a dinar that cannot move", domain.ProductDetails{Name: "Sencha", Price: domain.Money{Amount: 1001, Currency: "KWD"}}, map[string]string{"price/amount": "range"}},
		{"free", domain.ProductDetails{Name: "Sencha", Price: eur(0)}, map[string]string{"price/amount": "range"}},
		{"negative", domain.ProductDetails{Name: "Sencha", Price: eur(-1)}, map[string]string{"price/amount": "range"}},
		{"nothing at all", domain.ProductDetails{}, map[string]string{
			"name": "required", "price/currency": "pattern",
		}},
	} {
		require.Equal(t, c.want, invalid(c.details.Check), c.name)
	}
}

// Ensure an edit replaces the details and the time, and nothing else: not the version, which is the store's.
func TestProductEditReplacesTheDetails(t *testing.T) {
	t.Parallel()
	p := domain.NewProduct("default", "TEA-001", domain.ProductDetails{Name: "Sencha", Price: eur(1999), Active: true}, noon())
	p.Stored(7)
	before := p.State()
	edited := domain.ProductDetails{Name: "Sencha, 100 g", Price: eur(2099)}
	p.Edit(edited, later(1))
	want := before
	want.Details, want.UpdatedAt = edited, later(1)
	require.Equal(t, want, p.State())
}
