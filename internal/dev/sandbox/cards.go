package sandbox

// card is how one of Stripe's test payment methods behaves.
type card struct {
	decline *apiError // why the charge fails; nil: it succeeds
	action  bool      // the bank asks the customer to authenticate
	used    bool      // it was used before without a customer, so it cannot be used again
	// A refund on this card is answered with refundStarts and turns into refundEnds afterwards.
	refundStarts, refundEnds string
}

// lookupCard returns the behaviour of a test payment method, as Stripe documents it.
func lookupCard(method string) (card, bool) {
	c := card{refundStarts: statusSucceeded, refundEnds: statusSucceeded}
	switch method {
	case "pm_card_visa", "pm_card_visa_debit", "pm_card_mastercard", "pm_card_mastercard_debit", "pm_card_amex",
		"pm_card_discover", "pm_card_us", "pm_card_de":
	case "pm_card_visa_chargeDeclined", "pm_card_chargeDeclined":
		c.decline = declined("card_declined", "generic_decline")
	case "pm_card_visa_chargeDeclinedInsufficientFunds", "pm_card_chargeDeclinedInsufficientFunds":
		c.decline = declined("card_declined", "insufficient_funds")
	case "pm_card_chargeDeclinedExpiredCard":
		c.decline = declined("expired_card", "")
	case "pm_card_chargeDeclinedProcessingError":
		c.decline = declined("processing_error", "")
	case "pm_card_authenticationRequired":
		c.action = true
	case "pm_card_refundFail":
		// Stripe first answers that the refund succeeded: the card's bank sends the money back later.
		c.refundEnds = statusFailed
	case "pm_card_used_before": // the sandbox's own: at Stripe any payment method ends like this
		c.used = true
	case "pm_card_pendingRefund":
		c.refundStarts = statusPending
	default:
		return card{}, false
	}
	return c, true
}

func declined(code, declineCode string) *apiError {
	messages := map[string]string{
		"card_declined":           "Your card was declined.",
		"expired_card":            "Your card has expired.",
		"processing_error":        "An error occurred while processing your card. Try again in a little bit.",
		"authentication_required": "Your card was declined. This transaction requires authentication.",
	}
	return &apiError{
		Type: "card_error", Code: code, DeclineCode: declineCode, Message: messages[code], status: 402,
	}
}
