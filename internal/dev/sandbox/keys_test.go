package sandbox_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

const intents = "/v1/payment_intents"

// Ensure the same key and parameters replay the first answer byte for byte, success and decline alike.
func TestKeyReplays(t *testing.T) {
	t.Parallel()
	for method, status := range map[string]int{"pm_card_visa": 200, "pm_card_chargeDeclined": 402} {
		b := setup(t)
		first := b.post(intents, "k", form("payment_method", method))
		again := b.post(intents, "k", form("payment_method", method))
		equal(t, "first status", first.status, status)
		equal(t, "status", again.status, status)
		equal(t, "body", again.body, first.body)
		equal(t, "first is no replay", first.header.Get("Idempotent-Replayed"), "")
		equal(t, "marked", again.header.Get("Idempotent-Replayed"), "true")
		equal(t, "origin", again.header.Get("Original-Request"), first.header.Get("Request-Id"))
		if id := again.header.Get("Request-Id"); id == "" || id == first.header.Get("Request-Id") {
			t.Errorf("a replay has a request id of its own, got %q", id)
		}
		equal(t, "charges", len(b.Ledger().Charges), 1)
	}
}

// Ensure the replay is what was answered then, not what has become of it since.
func TestReplayIsHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_pendingRefund")
	made, err := b.refund(pi.ID, "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.stripe.V1Refunds.Retrieve(t.Context(), made.ID, nil); err != nil { // now it has succeeded
		t.Fatal(err)
	}
	again, err := b.refund(pi.ID, "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", again.Status, stripe.RefundStatusPending)
	equal(t, "same refund", again.ID, made.ID)
}

// Ensure the order of parameters on the wire does not matter, their values do.
func TestKeyWithOtherParameters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post(intents, "k", form())
	header := http.Header{
		"Authorization": {"Bearer sk_test_raw"}, "Content-Type": {"application/x-www-form-urlencoded"},
		"Idempotency-Key": {"k"},
	}
	reordered := "payment_method=pm_card_visa&metadata[order_id]=o1&currency=eur&confirm=true&amount=1999"
	equal(t, "reordered", b.do(http.MethodPost, intents, header, reordered).status, http.StatusOK)
	for _, r := range []reply{
		b.post(intents, "k", form("amount", "2000")),
		b.post(intents, "k", form("metadata[more]", "1")),
		b.post(intents, "k", form("amount", "no number")), // the key is looked at before the parameters
		b.post("/v1/refunds", "k", form()),
	} {
		equal(t, "status", r.status, http.StatusBadRequest)
		equal(t, "type", errorOf(t, r).Type, stripe.ErrorTypeIdempotency)
	}
	equal(t, "charges", len(b.Ledger().Charges), 1)
	equal(t, "outcome", b.Attempts()[2].Outcome, "mismatch")
}

// Ensure a second request is told that the key is in use while the first executes, and gets its result afterwards.
func TestKeyInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(sandbox.FaultRule{Operation: sandbox.OpCharge, Kind: sandbox.FaultHoldBefore, Times: 1})
	first := make(chan *stripe.PaymentIntent, 1)
	go func() {
		pi, _ := b.charge("o1", "pm_card_visa")
		first <- pi
	}()
	if err := b.WaitHeld(b.within(), 1); err != nil {
		t.Fatal(err)
	}
	_, err := b.charge("o1", "pm_card_visa")
	e := stripeError(t, err)
	equal(t, "status", e.HTTPStatusCode, http.StatusConflict)
	equal(t, "type", e.Type, stripe.ErrorTypeIdempotency)
	equal(t, "code", e.Code, stripe.ErrorCodeIdempotencyKeyInUse)
	equal(t, "nothing yet", len(b.Ledger().Charges), 0)
	equal(t, "first attempt", b.Attempts()[0].Outcome, "in_progress")

	b.ClearFaults()
	winner := <-first
	equal(t, "the same intent", b.mustCharge("o1", "pm_card_visa").ID, winner.ID)
	equal(t, "charges", len(b.Ledger().Charges), 1)
}

// Ensure what was refused before it began leaves the key free, also for other parameters.
func TestRefusedParametersLeaveTheKeyFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	equal(t, "refused", b.post(intents, "k", form("payment_method", "pm_unknown")).status, http.StatusBadRequest)
	r := b.post(intents, "k", form())
	equal(t, "status", r.status, http.StatusOK)
	equal(t, "replayed", r.header.Get("Idempotent-Replayed"), "")
}

// Ensure a refusal that came of executing is saved, as every result of an execution is.
func TestRefusalOfAnExecutionIsSaved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o1", "pm_card_visa")
	if _, err := b.refund(pi.ID, "r1", 2000); err == nil {
		t.Fatal("refunded more than was charged")
	}
	_, err := b.refund(pi.ID, "r1", 2000)
	equal(t, "replayed", stripeError(t, err).LastResponse.Header.Get("Idempotent-Replayed"), "true")
}

// Ensure a key lives 24 hours and not longer, and that ForgetKeys is the same without the wait.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.mustCharge("o1", "pm_card_visa")
	b.clock.advance(24*time.Hour - time.Second)
	equal(t, "just before", b.mustCharge("o1", "pm_card_visa").ID, first.ID)
	b.clock.advance(time.Second)
	second := b.mustCharge("o1", "pm_card_visa")
	if second.ID == first.ID {
		t.Error("the key outlived 24 hours")
	}
	b.ForgetKeys()
	if b.mustCharge("o1", "pm_card_visa").ID == second.ID {
		t.Error("the key was not forgotten")
	}
	equal(t, "charges", len(b.Ledger().Charges), 3)
}

// Ensure a key may be 255 characters long and no longer.
func TestKeyLength(t *testing.T) {
	t.Parallel()
	b := setup(t)
	equal(t, "255", b.post(intents, strings.Repeat("k", 255), form()).status, http.StatusOK)
	equal(t, "256", b.post(intents, strings.Repeat("k", 256), form()).status, http.StatusBadRequest)
}

// Ensure two requests without a key are two charges.
func TestNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post(intents, "", form())
	b.post(intents, "", form())
	equal(t, "charges", len(b.Ledger().Charges), 2)
}

// Ensure 20 requests at once with one key are one charge; the others get its result or are told to wait.
func TestTwentyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start, replies := make(chan struct{}), make(chan reply, 20)
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() {
			<-start
			replies <- b.post(intents, "k", form())
		})
	}
	close(start)
	crowd.Wait()
	close(replies)
	executed := 0
	for r := range replies {
		switch {
		case r.status == http.StatusOK && r.header.Get("Idempotent-Replayed") == "":
			executed++
		case r.status != http.StatusOK && r.status != http.StatusConflict:
			t.Errorf("unexpected answer: %d %s", r.status, r.body)
		}
	}
	equal(t, "executed", executed, 1)
	equal(t, "charges", len(b.Ledger().Charges), 1)
	equal(t, "attempts", len(b.Attempts()), 20)
}
