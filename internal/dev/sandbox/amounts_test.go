package sandbox_test

import (
	"strconv"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure amounts are refused that Stripe refuses, by the currency, the size and the digits, before anything executes.
func TestAmounts(t *testing.T) {
	t.Parallel()
	const tooSmall, tooLarge = stripe.ErrorCodeAmountTooSmall, stripe.ErrorCodeAmountTooLarge
	b := setup(t)
	for _, c := range []struct {
		currency string
		amount   int64
		param    string // of the refusal; empty: it is charged
		code     stripe.ErrorCode
	}{
		{"eur", 50, "", ""}, {"eur", 49, "amount", tooSmall}, {"EUR", 99_999_999, "", ""}, {"eur", 100_000_000, "amount", tooLarge},
		{"gbp", 30, "", ""}, {"gbp", 29, "amount", tooSmall}, {"huf", 17_500, "", ""}, {"huf", 17_499, "amount", tooSmall},
		{"huf", 17_501, "", ""}, {"twd", 1_001, "", ""}, // two decimals for charges; only payouts are in whole units
		{"jpy", 50, "", ""}, {"jpy", 49, "amount", tooSmall}, {"jpy", 51, "", ""}, // zero decimals
		{"kwd", 5_120, "", ""}, {"kwd", 5_124, "amount", ""}, // three decimals, the last of which is 0
		{"isk", 500, "", ""}, {"isk", 550, "amount", "invalid_charge_amount_no_decimal_compatible"},
		{"ugx", 500, "", ""}, {"ugx", 505, "amount", "invalid_charge_amount_no_decimal_compatible"},
		{"xyz", 1_000, "currency", ""}, {"hrk", 1_000, "currency", ""}, {"xau", 1_000, "currency", ""}, {"eu", 1_000, "currency", ""},
	} {
		name := c.currency + " " + strconv.FormatInt(c.amount, 10)
		r := b.post(intents, "", form("currency", c.currency, "amount", strconv.FormatInt(c.amount, 10)))
		if err := sandbox.CheckAmount(c.currency, c.amount); (err == nil) != (c.param == "") {
			t.Errorf("CheckAmount(%s): %v", name, err)
		}
		if c.param == "" {
			equal(t, name, r.status, 200)
			continue
		}
		e := errorOf(t, r)
		equal(t, name, r.status, 400)
		equal(t, name+" param", e.Param, c.param)
		equal(t, name+" code", e.Code, c.code)
		equal(t, name+" outcome", b.Attempts()[len(b.Attempts())-1].Outcome, "rejected")
	}
}

// Ensure refunds keep to the digits of their currency as charges do.
func TestRefundDigits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for currency, amounts := range map[string][2]int64{"kwd": {5_000, 1_005}, "isk": {5_000, 150}} {
		p := chargeParams(currency, "pm_card_visa")
		p.Amount, p.Currency = stripe.Int64(amounts[0]), stripe.String(currency)
		pi, err := b.stripe.V1PaymentIntents.Create(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.refund(pi.ID, currency, amounts[1])
		equal(t, currency, stripeError(t, err).Param, "amount")
	}
}
