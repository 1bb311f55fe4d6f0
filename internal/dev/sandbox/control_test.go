package sandbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure a refund that succeeded can fail a day later: the money is back with the merchant and can be refunded again.
func TestRefundFailsLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")
	re, err := b.refund(pi.ID, "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "at first", re.Status, stripe.RefundStatusSucceeded)
	b.AdvanceClock(24 * time.Hour)
	equal(t, "failed", b.FailRefund(re.ID), nil)
	equal(t, "once only", b.FailRefund(re.ID) != nil, true)
	read, err := b.stripe.V1Refunds.Retrieve(t.Context(), re.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", read.Status, stripe.RefundStatusFailed)
	equal(t, "reason", read.FailureReason, stripe.RefundFailureReasonExpiredOrCanceledCard)
	equal(t, "ledger", b.Ledger().Refunds[0].Status, "failed")
	again, err := b.refund(pi.ID, "r2", 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "all of it again", again.Amount, pi.Amount)
	equal(t, "a day younger", again.Created-re.Created >= 86_400, true)
}

// Ensure a pending refund can be made to succeed without a look at it.
func TestFinishRefund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_pendingRefund")
	re, err := b.refund(pi.ID, "r1", 500)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "pending", b.Ledger().Refunds[0].Status, "pending")
	equal(t, "finished", b.FinishRefund(re.ID), nil)
	equal(t, "ledger", b.Ledger().Refunds[0].Status, "succeeded")
	equal(t, "once only", b.FinishRefund(re.ID) != nil, true)
}

// Ensure a disputed charge cannot be refunded, and that only a charge can be disputed, once.
func TestDispute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")
	equal(t, "opened", b.OpenDispute(pi.ID), nil)
	equal(t, "once only", b.OpenDispute(pi.ID) != nil, true)
	equal(t, "no charge", b.OpenDispute(b.create("o2", "pm_card_visa").ID) != nil, true)
	_, err := b.refund(pi.ID, "r1", 100)
	equal(t, "code", stripeError(t, err).Code, stripe.ErrorCodeChargeDisputed)
}

// Ensure a later time prunes keys and lets the search catch up; the clock never goes back.
func TestClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.mustCharge("o1", "pm_card_visa")
	b.AdvanceClock(-time.Hour)
	b.AdvanceClock(24*time.Hour - time.Second)
	equal(t, "replayed", b.mustCharge("o1", "pm_card_visa").ID, first.ID)
	b.AdvanceClock(time.Second)
	second := b.mustCharge("o1", "pm_card_visa")
	equal(t, "a new one", second.ID != first.ID, true)
	b.clock.advance(-time.Hour)
	equal(t, "never back", b.mustCharge("o2", "pm_card_visa").Created >= second.Created, true)
	orders, err := b.search("metadata['order_id']:'o1'", 10)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "found", len(orders), 1)
}

// Ensure tokens keep to the real time: a service refuses one that was issued in its future.
func TestTokensIgnoreTheAdvance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.AdvanceClock(48 * time.Hour)
	token, err := b.Token("ann", "", "orders:read", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.parse(token); err != nil {
		t.Error(err)
	}
}

// Ensure where events go can be changed while they are on their way, and what was delivered can be seen.
func TestEventsMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	equal(t, "none yet", b.do(http.MethodGet, "/deliveries", nil, "").body, "[]\n")
	r := b.receive()
	b.SetEventsURL("")
	b.create("o1", "pm_card_visa")
	equal(t, "nowhere", len(b.types(r)), 0)
	b.SetEventsURL("http://127.0.0.1:1/")
	b.create("o2", "pm_card_visa") // nothing listens there, and each later try goes to the new address
	b.SetEventsURL(r.url)
	sameSet(t, "taken", b.types(r), "payment_intent.created")
	equal(t, "order", r.events[0].Data.Object["metadata"].(map[string]any)["order_id"], any("o2"))
	equal(t, "kind", b.Deliveries()[0].Kind, sandbox.DeliveryEvent)
}
