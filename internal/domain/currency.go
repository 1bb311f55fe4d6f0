package domain

import "strings"

// MaxCharge is the maximum of one charge, in minor units of any currency: the provider accepts eight digits.
const MaxCharge = 99_999_999

// The currencies that can be charged: current ISO 4217 codes that the provider accepts with the same minor units. ISK
// and UGX are excluded: they have no minor unit, but the provider counts them in hundredths. docs/provider.md names the
// pages of the provider's documentation.
const (
	noDecimals  = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF"
	twoDecimals = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CNY COP CRC " +
		"CVE CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR JMD KES KGS KHR KYD " +
		"KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP " +
		"PKR PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS WST " +
		"XCD XCG YER ZAR ZMW"
	threeDecimals = "BHD JOD KWD OMR TND" // the last digit must be 0
)

// leastCharge is the provider's minimum of a charge, in minor units, where it states one; else it is 1.
var leastCharge = map[string]int64{
	"AED": 200, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "CZK": 1500, "DKK": 250, "EUR": 50, "GBP": 30, "HKD": 400,
	"HUF": 17500, "INR": 50, "JPY": 50, "MXN": 1000, "MYR": 200, "NOK": 300, "NZD": 50, "PLN": 200, "RON": 200, "SEK": 300,
	"SGD": 50, "THB": 1000, "USD": 50,
}

// ValidCurrency reports whether code, in capitals, is a currency that can be charged.
func ValidCurrency(code string) bool {
	const known = noDecimals + " " + twoDecimals + " " + threeDecimals
	return len(code) == 3 && !strings.Contains(code, " ") && strings.Contains(known, code)
}

// Payable reports whether the amount can be a price or a refund: positive, at most MaxCharge, and a multiple of the
// provider's smallest unit.
func (m Money) Payable() bool {
	step := int64(1)
	if strings.Contains(threeDecimals, m.Currency) {
		step = 10
	}
	return m.Amount > 0 && m.Amount <= MaxCharge && m.Amount%step == 0
}

// Chargeable reports whether the amount can be charged at once: payable, and at least the provider's minimum.
func (m Money) Chargeable() bool { return m.Payable() && m.Amount >= leastCharge[m.Currency] }
