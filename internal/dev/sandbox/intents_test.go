package sandbox_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure good cards are charged, and that the intent can be read back.
func TestChargeSucceeds(t *testing.T) {
	t.Parallel()
	for _, method := range []string{
		"pm_card_visa", "pm_card_mastercard", "pm_card_amex", "pm_card_refundFail", "pm_card_pendingRefund",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made := b.mustCharge("o1", method)
			read, err := b.stripe.V1PaymentIntents.Retrieve(t.Context(), made.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, pi := range []*stripe.PaymentIntent{made, read} {
				equal(t, "status", pi.Status, stripe.PaymentIntentStatusSucceeded)
				equal(t, "received", pi.AmountReceived, 1999)
				equal(t, "currency", pi.Currency, stripe.CurrencyEUR)
				equal(t, "method", pi.PaymentMethod.ID, method)
				equal(t, "order", pi.Metadata["order_id"], "o1")
				equal(t, "charge", strings.HasPrefix(pi.LatestCharge.ID, "ch_"), true)
			}
			equal(t, "ledger", b.Ledger().Charges[0].Status, "succeeded")
		})
	}
}

// Ensure a bad card is a 402 with Stripe's codes and the intent inside, and a failed charge in the ledger.
func TestChargeIsDeclined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method  string
		code    stripe.ErrorCode
		decline stripe.DeclineCode
	}{
		{"pm_card_visa_chargeDeclined", "card_declined", "generic_decline"},
		{"pm_card_chargeDeclined", "card_declined", "generic_decline"},
		{"pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"},
		{"pm_card_chargeDeclinedExpiredCard", "expired_card", ""},
		{"pm_card_chargeDeclinedProcessingError", "processing_error", ""},
		{"pm_card_authenticationRequired", "authentication_required", "authentication_required"},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, err := b.charge("o1", c.method)
			e := stripeError(t, err)
			equal(t, "status", e.HTTPStatusCode, http.StatusPaymentRequired)
			equal(t, "type", e.Type, stripe.ErrorTypeCard)
			equal(t, "code", e.Code, c.code)
			equal(t, "decline code", e.DeclineCode, c.decline)
			equal(t, "intent status", e.PaymentIntent.Status, stripe.PaymentIntentStatusRequiresPaymentMethod)
			equal(t, "reason kept", e.PaymentIntent.LastPaymentError.Code, c.code)
			equal(t, "order", e.PaymentIntent.Metadata["order_id"], "o1")
			equal(t, "ledger", b.Ledger().Charges[0].Status, "failed")
			equal(t, "ledger id", b.Ledger().Charges[0].ID, e.PaymentIntent.ID)
		})
	}
}

// Ensure an intent on whose card nothing was tried yet is not in the ledger: no money moved.
func TestIntentWithoutAttempt(t *testing.T) {
	t.Parallel()
	for status, f := range map[string]map[string]string{
		"requires_payment_method": {"confirm": "", "payment_method": ""},
		"requires_confirmation":   {"confirm": "false"},
		"requires_action":         {"payment_method": "pm_card_authenticationRequired"},
	} {
		b := setup(t)
		asked := form()
		for name, value := range f {
			if asked.Set(name, value); value == "" {
				asked.Del(name)
			}
		}
		r := b.post("/v1/payment_intents", "k", asked)
		equal(t, status, r.status, http.StatusOK)
		equal(t, status, strings.Contains(r.body, `"status":"`+status+`"`), true)
		equal(t, "charges", len(b.Ledger().Charges), 0)
	}
}

// Ensure bad parameters are refused with the name of the parameter, and that nothing comes of them.
func TestChargeValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		param, value string
		code         stripe.ErrorCode
	}{
		{"payment_method", "pm_unknown", stripe.ErrorCodeResourceMissing},
		{"payment_method", "", stripe.ErrorCodeParameterMissing},
		{"amount", "", stripe.ErrorCodeParameterMissing},
		{"amount", "0", stripe.ErrorCodeParameterInvalidInteger},
		{"amount", "-1", stripe.ErrorCodeParameterInvalidInteger},
		{"amount", "19.99", stripe.ErrorCodeParameterInvalidInteger},
		{"amount", "9223372036854775808", stripe.ErrorCodeParameterInvalidInteger},
		{"currency", "", stripe.ErrorCodeParameterMissing},
		{"currency", "euro", ""},
		{"confirm", "yes", ""},
		{"payment_method_types[0]", "paypal", ""},
		{"application_fee_amount", "1", stripe.ErrorCodeParameterUnknown},
	} {
		r := b.post("/v1/payment_intents", "k", form(c.param, c.value))
		equal(t, c.param+"="+c.value, r.status, http.StatusBadRequest)
		e := errorOf(t, r)
		equal(t, c.param+" type", e.Type, stripe.ErrorTypeInvalidRequest)
		equal(t, c.param+" code", e.Code, c.code)
		equal(t, c.param+" param", strings.HasPrefix(c.param, e.Param) && e.Param != "", true)
	}
	r := b.post("/v1/payment_intents", "k", form("confirm", "false", "error_on_requires_action", "true"))
	equal(t, "error_on_requires_action without confirm", r.status, http.StatusBadRequest)
	header := http.Header{"Authorization": {"Bearer sk_test_raw"}, "Content-Type": {"application/json"}}
	r = b.do(http.MethodPost, "/v1/payment_intents", header, `{"amount":1999}`)
	equal(t, "JSON body", r.status, http.StatusBadRequest)
	equal(t, "charges", len(b.Ledger().Charges), 0)
}

// Ensure metadata keeps to Stripe's limits, at their edges.
func TestMetadataLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pairs := func(n int) (f url.Values) {
		f = form()
		for i := range n - 1 { // the form has one already
			f.Set("metadata[m"+strconv.Itoa(i)+"]", "x")
		}
		return f
	}
	long := strings.Repeat("ü", 500)
	for _, c := range []struct {
		what   string
		form   url.Values
		status int
	}{
		{"50 keys", pairs(50), 200}, {"51 keys", pairs(51), 400},
		{"a name of 40", form("metadata["+long[:80]+"]", "x"), 200}, {"a name of 41", form("metadata["+long[:82]+"]", "x"), 400},
		{"a value of 500", form("metadata[m]", long), 200}, {"a value of 501", form("metadata[m]", long+"u"), 400},
	} {
		equal(t, c.what, b.post(intents, "", c.form).status, c.status)
	}
}

// Ensure an unknown intent is a 404 of Stripe's kind.
func TestUnknownIntent(t *testing.T) {
	t.Parallel()
	_, err := setup(t).stripe.V1PaymentIntents.Retrieve(t.Context(), "pi_none", nil)
	e := stripeError(t, err)
	equal(t, "status", e.HTTPStatusCode, http.StatusNotFound)
	equal(t, "code", e.Code, stripe.ErrorCodeResourceMissing)
}

func (b *bench) search(query string, limit int64) ([]string, error) {
	p := &stripe.PaymentIntentSearchParams{}
	p.Query, p.Limit = query, stripe.Int64(limit)
	var orders []string
	for pi, err := range b.stripe.V1PaymentIntents.Search(b.t.Context(), p).All(b.t.Context()) {
		if err != nil {
			return nil, err
		}
		orders = append(orders, pi.Metadata["order_id"])
	}
	return orders, nil
}

// Ensure a charge is found by its metadata, newest first, page by page, and never by half a match.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustCharge("o1", "pm_card_visa")
	b.mustCharge("o2", "pm_card_visa")
	for range 3 {
		p := chargeParams("o3", "pm_card_visa")
		p.IdempotencyKey = nil // stripe-go makes one
		if _, err := b.stripe.V1PaymentIntents.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.advance(sandbox.DefaultSearchLag)
	for query, want := range map[string]string{
		`metadata['order_id']:'o1'`: "o1",
		`metadata['order_id']:'o3'`: "o3,o3,o3",
		`metadata['order_id']:'o'`:  "",
		`metadata['other']:'o1'`:    "",
	} {
		orders, err := b.search(query, 1)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		equal(t, query, strings.Join(orders, ","), want)
	}
}

// Ensure a query that the sandbox does not understand is refused, not answered with too much or too little.
func TestSearchRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustCharge("o1", "pm_card_visa")
	for _, query := range []string{
		``, `amount>100`, `status:'succeeded'`, `metadata['order_id']:'o1`, `metadata[order_id]:'o1'`,
		`metadata['order_id']:'o1' AND status:'succeeded'`, `metadata['order_id']:'o1' AND`, `metadata['order_id']~'o'`,
		`metadata['order_id']:'o\'1'`,
	} {
		_, err := b.search(query, 10)
		equal(t, query, stripeError(t, err).HTTPStatusCode, http.StatusBadRequest)
	}
}
