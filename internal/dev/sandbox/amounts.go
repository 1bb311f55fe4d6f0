package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// The currencies, the digits that Stripe counts in, and the smallest and largest amounts are those of
// https://docs.stripe.com/currencies. Where the page allows more for some cards (IDR, INR, JPY, HUF, COP, LBP), the
// sandbox keeps to the limit that holds for all. Currencies that are no longer legal tender (ANG, BGN, HRK, SLL, STD)
// are refused, though Stripe still knows some of them: a service must not price in them.

// maxAmount is eight digits.
const maxAmount = 99_999_999

const (
	twoDecimals = "aed afn all amd aoa ars aud awg azn bam bbd bdt bmd bnd bob brl bsd bwp byn bzd cad cdf chf cny cop " +
		"crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl htg huf idr ils inr jmd kes kgs khr " +
		"kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen pgk " +
		"php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd szl thb tjs top try ttd twd tzs uah usd uyu uzs " +
		"wst xcd xcg yer zar zmw"
	zeroDecimals  = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
	threeDecimals = "bhd jod kwd omr tnd" // the last digit must be 0
	wholeOnly     = "isk ugx"             // counted in hundredths, but only whole units can be charged
)

// minAmounts is the least that can be charged in a currency. Stripe converts the least of the account's own currency
// for all others; the sandbox has no rates, so it does not limit those.
func minAmount(currency string) int64 {
	switch currency {
	case "usd", "aud", "brl", "cad", "chf", "eur", "inr", "jpy", "nzd", "sgd":
		return 50
	case "gbp":
		return 30
	case "aed", "myr", "pln", "ron":
		return 200
	case "dkk":
		return 250
	case "nok", "sek":
		return 300
	case "hkd":
		return 400
	case "mxn", "thb":
		return 1000
	case "czk":
		return 1500
	case "huf":
		return 17500
	default:
		return 1
	}
}

// CheckAmount says why Stripe would not charge an amount, in the minor units that it counts the currency in. Currency is
// an ISO 4217 code in upper or lower case. It returns nil for an amount that can be charged.
func CheckAmount(currency string, amount int64) error {
	if e := checkAmount(strings.ToLower(currency), amount); e != nil {
		return fmt.Errorf("%s %s: %s", e.Param, e.Code, e.Message)
	}
	return nil
}

func checkAmount(currency string, amount int64) *apiError {
	if e := checkCurrency(currency); e != nil {
		return e
	}
	switch least := minAmount(currency); {
	case amount > maxAmount:
		return invalid("amount_too_large", "amount", "Amount must be no more than "+money(maxAmount, currency))
	case amount < least:
		return invalid("amount_too_small", "amount", "Amount must be at least "+money(least, currency))
	}
	return checkDigits(currency, amount)
}

func checkCurrency(currency string) *apiError {
	for _, list := range []string{twoDecimals, zeroDecimals, threeDecimals, wholeOnly} {
		if slices.Contains(strings.Fields(list), currency) {
			return nil
		}
	}
	return invalid("", "currency", fmt.Sprintf("Invalid currency: %s. Stripe currently supports these currencies: %s",
		currency, strings.ReplaceAll(strings.Join([]string{twoDecimals, zeroDecimals, threeDecimals, wholeOnly}, " "), " ", ", ")))
}

// checkDigits holds for charges and refunds alike.
func checkDigits(currency string, amount int64) *apiError {
	switch {
	case slices.Contains(strings.Fields(wholeOnly), currency) && amount%100 != 0:
		return invalid("invalid_charge_amount_no_decimal_compatible", "amount", fmt.Sprintf("Invalid amount. Currency %s "+
			"has become effectively zero-decimal and charged amounts must be evenly divisible by 100. "+
			"See https://stripe.com/docs/currencies#special-cases for more information.", strings.ToUpper(currency)))
	case slices.Contains(strings.Fields(threeDecimals), currency) && amount%10 != 0:
		return invalid("", "amount", "Invalid amount. The last digit of an amount in "+strings.ToUpper(currency)+" must be 0.")
	}
	return nil
}

// money shows an amount as Stripe's messages do, but for the symbol.
func money(amount int64, currency string) string {
	switch {
	case slices.Contains(strings.Fields(zeroDecimals), currency):
		return fmt.Sprintf("%d %s", amount, currency)
	case slices.Contains(strings.Fields(threeDecimals), currency):
		return fmt.Sprintf("%d.%03d %s", amount/1000, amount%1000, currency)
	default:
		return fmt.Sprintf("%d.%02d %s", amount/100, amount%100, currency)
	}
}
