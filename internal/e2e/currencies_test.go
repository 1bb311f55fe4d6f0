package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/domain"
)

// Ensure every amount that the domain lets an order cost is one that the provider charges, for every currency that either
// of them knows; and that the domain refuses no more than it says: the two currencies without a minor unit.
func TestCurrenciesOfTheDomainAreTheProviders(t *testing.T) {
	t.Parallel()
	amounts := []int64{-1, 0, 1, 10, 29, 30, 49, 50, 99, 100, 199, 200, 250, 299, 300, 399, 400, 999, 1000, 1001, 1499, 1500,
		1505, 17499, 17500, domain.MaxCharge - 9, domain.MaxCharge, domain.MaxCharge + 1}
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				code := string(a) + string(b) + string(c)
				for _, amount := range amounts {
					m := domain.Money{Amount: amount, Currency: code}
					here := domain.ValidCurrency(code) && m.Chargeable()
					there := sandbox.CheckAmount(code, amount) == nil && code != "ISK" && code != "UGX"
					require.Equal(t, there, here, "%d %s", amount, code)
				}
			}
		}
	}
}
