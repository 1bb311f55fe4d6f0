package sandbox_test

import (
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure refunds add up to the charge and never to more.
func TestRefundLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")

	_, err := b.refund(pi.ID, "too-much", 2000)
	equal(t, "more than the charge", stripeError(t, err).HTTPStatusCode, http.StatusBadRequest)
	equal(t, "param", stripeError(t, err).Param, "amount")

	part, err := b.refund(pi.ID, "part", 1500)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", part.Status, stripe.RefundStatusSucceeded)
	equal(t, "intent", part.PaymentIntent.ID, pi.ID)
	equal(t, "charge", part.Charge.ID, pi.LatestCharge.ID)

	_, err = b.refund(pi.ID, "more-than-left", 500)
	equal(t, "more than is left", stripeError(t, err).Type, stripe.ErrorTypeInvalidRequest)

	rest, err := b.refund(pi.ID, "rest", 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "all that is left", rest.Amount, 499)

	_, err = b.refund(pi.ID, "again", 1)
	equal(t, "nothing left", stripeError(t, err).Code, stripe.ErrorCodeChargeAlreadyRefunded)
	equal(t, "refunds", len(b.Ledger().Refunds), 2)
}

// Ensure only a charge that succeeded can be refunded.
func TestRefundNeedsACharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.charge("o1", "pm_card_chargeDeclined")
	declined := stripeError(t, err).PaymentIntent.ID
	for refundID, intent := range map[string]string{"r1": declined, "r2": "pi_none"} {
		_, err := b.refund(intent, refundID, 100)
		e := stripeError(t, err)
		equal(t, intent, e.HTTPStatusCode, http.StatusBadRequest)
		equal(t, intent, e.Type, stripe.ErrorTypeInvalidRequest)
	}
	equal(t, "refunds", len(b.Ledger().Refunds), 0)
}

// Ensure bad refund parameters are refused.
func TestRefundValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")
	for param, value := range map[string]string{"amount": "0", "reason": "duplicate", "charge": "ch_1", "payment_intent": ""} {
		f := form("currency", "", "confirm", "", "payment_method", "", "payment_intent", pi.ID, param, value)
		r := b.post("/v1/refunds", "", f)
		equal(t, param, r.status, http.StatusBadRequest)
		equal(t, param, errorOf(t, r).Param, param)
	}
}

// Ensure refunds on Stripe's special cards, and under a decline, start and end as Stripe says.
func TestRefundCourses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method      string
		decline     bool
		starts, end stripe.RefundStatus
	}{
		{"pm_card_visa", false, "succeeded", "succeeded"},
		{"pm_card_pendingRefund", false, "pending", "succeeded"},
		{"pm_card_refundFail", false, "succeeded", "failed"},
		{"pm_card_visa", true, "failed", "failed"},
		{"pm_card_pendingRefund", true, "failed", "failed"},
	} {
		b := setup(t)
		pi := b.mustCharge("o1", c.method)
		if c.decline {
			b.faults(sandbox.FaultRule{Operation: sandbox.OpRefund, Kind: sandbox.FaultDecline, Times: 1})
		}
		made, err := b.refund(pi.ID, "r1", 0)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.method+" starts", made.Status, c.starts)
		equal(t, c.method+" in the ledger", b.Ledger().Refunds[0].Status, string(c.starts))
		read, err := b.stripe.V1Refunds.Retrieve(t.Context(), made.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, c.method+" ends", read.Status, c.end)
		equal(t, c.method+" failure reason", read.FailureReason != "", c.end == "failed")
		equal(t, c.method+" at last", b.Ledger().Refunds[0].Status, string(c.end))
		if c.end == "failed" { // nothing was given back, so all of it can be tried again
			if _, err := b.refund(pi.ID, "r2", 1999); err != nil {
				t.Errorf("%s: second refund: %v", c.method, err)
			}
		}
	}
}

// Ensure a list shows the refunds of one charge, newest first, page by page, each where it has come to by now.
func TestListRefunds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi, other := b.mustCharge("o1", "pm_card_pendingRefund"), b.mustCharge("o2", "pm_card_visa")
	for id, of := range map[string]string{"x": other.ID} {
		if _, err := b.refund(of, id, 100); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		if _, err := b.refund(pi.ID, id, 100); err != nil {
			t.Fatal(err)
		}
	}
	p := &stripe.RefundListParams{PaymentIntent: stripe.String(pi.ID)}
	p.Limit = stripe.Int64(2)
	got := ""
	for r, err := range b.stripe.V1Refunds.List(t.Context(), p).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got += r.Metadata["refund_id"] + ":" + string(r.Status) + " "
	}
	equal(t, "list", got, "r3:succeeded r2:succeeded r1:succeeded ")
}

// Ensure an unknown refund is a 404 of Stripe's kind.
func TestUnknownRefund(t *testing.T) {
	t.Parallel()
	_, err := setup(t).stripe.V1Refunds.Retrieve(t.Context(), "re_none", nil)
	equal(t, "status", stripeError(t, err).HTTPStatusCode, http.StatusNotFound)
}
