package app

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

// Ensure every use case refuses an input that is not valid by itself, and names each field that is not, whatever the boundary
// before it lets pass.
func TestInputsAreValidated(t *testing.T) {
	t.Parallel()
	address := domain.Address{Name: "Alice Ames", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE"}
	long := strings.Repeat("x", 501)
	for name, c := range map[string]struct {
		good, bad func() error
		fields    []string
	}{
		"place-order": {
			PlaceOrderInput{Currency: "EUR", Lines: []domain.Item{{SKU: "TEA-001", Quantity: 1}}, Address: address, PaymentMethod: "pm_card_visa"}.validate,
			PlaceOrderInput{Currency: "AAA", PaymentMethod: "a b"}.validate,
			[]string{
				"currency", "lines", "payment_method", "shipping_address/city", "shipping_address/country", "shipping_address/line1", "shipping_address/name",
				"shipping_address/postal_code",
			},
		},
		"change-shipping-address": {
			ChangeAddressInput{Address: address}.validate, ChangeAddressInput{Address: domain.Address{Country: "ZZ"}}.validate,
			[]string{"city", "country", "line1", "name", "postal_code"},
		},
		"ship-order": {
			ShipOrderInput{Carrier: "DHL", TrackingNumber: "1"}.validate, ShipOrderInput{Carrier: " "}.validate, []string{"carrier", "tracking_number"},
		},
		"cancel-order": {CancelOrderInput{}.validate, CancelOrderInput{Reason: long}.validate, []string{"reason"}},
		"refund-order": {
			RefundOrderInput{Amount: 1, Currency: "EUR"}.validate, RefundOrderInput{Amount: 1, Currency: "AAA", Reason: long}.validate,
			[]string{"amount/currency", "reason"},
		},
		"refund-order, of nothing": {RefundOrderInput{Amount: 10, Currency: "KWD"}.validate, RefundOrderInput{Currency: "EUR"}.validate, []string{"amount/amount"}},
		"put-product": {
			PutProductInput{SKU: "TEA-001", Details: domain.ProductDetails{Name: "Tea", Price: domain.Money{Amount: 1, Currency: "EUR"}}}.validate,
			PutProductInput{SKU: "tea", Details: domain.ProductDetails{Price: domain.Money{Currency: "EUR"}}}.validate,
			[]string{"name", "price/amount", "sku"},
		},
		"adjust-stock, by the most":       {AdjustStockInput{Delta: 1_000_000}.validate, AdjustStockInput{Delta: 1_000_001, Reason: long}.validate, []string{"delta", "reason"}},
		"adjust-stock, by minus the most": {AdjustStockInput{Delta: -1_000_000}.validate, AdjustStockInput{Delta: -1_000_001}.validate, []string{"delta"}},
		"adjust-stock, by one":            {AdjustStockInput{Delta: 1}.validate, AdjustStockInput{}.validate, []string{"delta"}},
	} {
		require.NoError(t, c.good(), name)
		refusal, ok := errors.AsType[*domain.Error](c.bad())
		require.True(t, ok, name)
		require.Equal(t, domain.CodeValidationFailed, refusal.Code, name)
		fields := map[string]bool{}
		for _, f := range refusal.Fields {
			fields[f.Field] = true
		}
		require.Equal(t, c.fields, slices.Sorted(maps.Keys(fields)), name)
	}
}
