package sandbox_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

func rule(op, kind string, times int) sandbox.FaultRule {
	return sandbox.FaultRule{Operation: op, Kind: kind, Times: times}
}

// Ensure a dropped answer is a lost answer: charged, seen by the caller as no answer at all, replayed on the retry. The
// connection is one that was used before, where Go's client would resend beneath its caller.
func TestDrop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustCharge("o0", "pm_card_visa")
	b.faults(rule(sandbox.OpCharge, sandbox.FaultDrop, 1))
	_, err := b.charge("o1", "pm_card_visa")
	if e := (*stripe.Error)(nil); err == nil || errors.As(err, &e) {
		t.Fatalf("got %v, want a broken connection", err)
	}
	equal(t, "charges", len(b.Ledger().Charges), 2)
	equal(t, "outcome", b.Attempts()[1].Outcome, "executed+drop")
	equal(t, "retry", b.mustCharge("o1", "pm_card_visa").ID, b.Ledger().Charges[1].ID)
	equal(t, "charges", len(b.Ledger().Charges), 2)
}

// Ensure a held answer waits, charged and saved, until the rules are cleared.
func TestHoldUntilCleared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(rule(sandbox.OpCharge, sandbox.FaultHold, 1))
	held := make(chan *stripe.PaymentIntent, 1)
	go func() {
		pi, _ := b.charge("o1", "pm_card_visa")
		held <- pi
	}()
	if err := b.WaitHeld(b.within(), 1); err != nil {
		t.Fatal(err)
	}
	equal(t, "charges", len(b.Ledger().Charges), 1)
	replayed := b.mustCharge("o1", "pm_card_visa") // the rule was for one request; the key is saved
	select {
	case <-held:
		t.Fatal("the held answer left")
	default:
	}
	b.ClearFaults()
	equal(t, "the same intent", (<-held).ID, replayed.ID)
}

// Ensure a hold ends when its client goes, and that the charge stands, executed before or after.
func TestHoldUntilTheClientGoes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{sandbox.FaultHold, sandbox.FaultHoldBefore} {
		b := setup(t)
		b.faults(rule(sandbox.OpAny, kind, 1))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := b.stripe.V1PaymentIntents.Create(ctx, chargeParams("o1", "pm_card_visa"))
			gone <- err
		}()
		if err := b.WaitHeld(b.within(), 1); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: got %v, want the end of the context", kind, err)
		}
		if err := b.WaitCharges(b.within(), 1); err != nil {
			t.Fatal(err)
		}
		b.mustCharge("o1", "pm_card_visa")
		equal(t, kind+": charges", len(b.Ledger().Charges), 1)
	}
}

// Ensure a delay comes after the charge and before the answer, and that a client that goes need not wait for it.
func TestDelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := sandbox.FaultRule{Operation: sandbox.OpCharge, Kind: sandbox.FaultDelay, Times: 1, DelayMS: 3_600_000}
	short := long
	short.DelayMS = 30
	b.faults(long, short)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := b.stripe.V1PaymentIntents.Create(ctx, chargeParams("o1", "pm_card_visa"))
		gone <- err
	}()
	if err := b.WaitCharges(b.within(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the end of the context", err)
	}
	began := time.Now()
	b.mustCharge("o1", "pm_card_visa")
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("answered after %s, before the delay was over", took)
	}
}

// Ensure the faults that answer instead, or after, leave behind exactly what they say: an execution that began is saved
// under its key with its 500, whether it had its effect or not, and nothing else is.
func TestFaultsThatAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    string
		status  int
		errType stripe.ErrorType
		code    stripe.ErrorCode
		outcome string
		charged int // right after the fault
		saved   bool
	}{
		{sandbox.FaultError500, 500, "api_error", "", "executed+error_500", 1, true},
		{sandbox.FaultError500Undone, 500, "api_error", "", "error_500_undone", 0, true},
		{sandbox.FaultError500Before, 500, "api_error", "", "error_500_before", 0, false},
		{sandbox.FaultConflict409, 409, "idempotency_error", "idempotency_key_in_use", "conflict_409", 0, false},
		{sandbox.FaultRateLimit429, 429, "invalid_request_error", "rate_limit", "rate_limit_429", 0, false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.faults(rule(sandbox.OpCharge, c.kind, 1))
			first := b.post(intents, "k", form())
			e := errorOf(t, first)
			equal(t, "status", first.status, c.status)
			equal(t, "type", e.Type, c.errType)
			equal(t, "code", e.Code, c.code)
			equal(t, "charged", len(b.Ledger().Charges), c.charged)
			equal(t, "outcome", b.Attempts()[0].Outcome, c.outcome)

			again := b.post(intents, "k", form())
			equal(t, "retry is a replay", again.header.Get("Idempotent-Replayed") == "true", c.saved)
			equal(t, "retry has the same answer", again.status == c.status && again.body == first.body, c.saved)
			b.post(intents, "other", form())
			equal(t, "charges in the end", len(b.Ledger().Charges), c.charged+map[bool]int{true: 1, false: 2}[c.saved])
			b.clock.advance(24 * time.Hour)
			equal(t, "pruned", b.post(intents, "k", form()).status, 200)
		})
	}
}

// Ensure a decline rule turns down a good card, for good under this key.
func TestDecline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.faults(rule(sandbox.OpCharge, sandbox.FaultDecline, 1))
	for range 2 {
		_, err := b.charge("o1", "pm_card_visa")
		equal(t, "code", stripeError(t, err).Code, stripe.ErrorCodeCardDeclined)
	}
	equal(t, "ledger", b.Ledger().Charges[0].Status, "failed")
	b.mustCharge("o2", "pm_card_visa")
}

// Ensure a rule meets the next N requests of its own operation and no other, and that 0 means until cleared.
func TestRuleCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o0", "pm_card_visa")
	b.faults(rule(sandbox.OpCharge, sandbox.FaultRateLimit429, 2), rule(sandbox.OpSearch, sandbox.FaultError500Before, 0))
	for i := range 4 {
		_, err := b.charge("o1", "pm_card_visa")
		equal(t, "charge refused", err != nil, i < 2)
		_, err = b.search("metadata['order_id']:'o1'", 10)
		equal(t, "search refused", err != nil, true)
	}
	if _, err := b.refund(pi.ID, "r1", 100); err != nil {
		t.Errorf("a refund met a rule that is not for refunds: %v", err)
	}
	b.ClearFaults()
	if _, err := b.search("metadata['order_id']:'o1'", 10); err != nil {
		t.Errorf("search after the rules were cleared: %v", err)
	}
}

// Ensure a rule for any operation meets reads too, unless reads have nothing that it could do.
func TestAny(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.mustCharge("o0", "pm_card_visa")
	b.faults(rule(sandbox.OpAny, sandbox.FaultDecline, 1), rule(sandbox.OpAny, sandbox.FaultError500, 1))
	_, err := b.stripe.V1PaymentIntents.Retrieve(t.Context(), pi.ID, nil)
	equal(t, "read", stripeError(t, err).HTTPStatusCode, 500)
	_, err = b.charge("o1", "pm_card_visa")
	equal(t, "write", stripeError(t, err).HTTPStatusCode, 402)
}

// Ensure faults can be set, seen and cleared over HTTP, and that a bad request changes nothing.
func TestFaultsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const rules = `{"rules":[{"operation":"charge","kind":"rate_limit_429","times":2}]}`
	equal(t, "put", b.do(http.MethodPut, "/faults", nil, rules).body, rules+"\n")
	for _, bad := range []string{
		``, `[]`, `{"rule":[]}`, `{"rules":[]} {}`, `{"rules":[{"operation":"charge"}]}`,
		`{"rules":[{"operation":"pay","kind":"drop"}]}`, `{"rules":[{"operation":"charge","kind":"drop","times":-1}]}`,
		`{"rules":[{"operation":"charge","kind":"delay","times":1}]}`,
		`{"rules":[{"operation":"charge","kind":"drop","delay_ms":5}]}`,
		`{"rules":[{"operation":"search","kind":"decline"}]}`, `{"rules":[{"operation":"refund","kind":"processing"}]}`,
		`{"rules":[{"operation":"event","kind":"drop"}]}`, `{"rules":[{"operation":"any","kind":"lost"}]}`,
		`{"rules":[{"operation":"event","kind":"late"}]}`, `{"rules":[{"operation":"any","kind":"drop","retry_after":1}]}`,
		`{"rules":[{"operation":"any","kind":"drop","event_type":"x"}]}`,
		`{"rules":[{"operation":"any","kind":"drop"},{"operation":"any","kind":"?"}]}`,
	} {
		equal(t, bad, b.do(http.MethodPut, "/faults", nil, bad).status, http.StatusBadRequest)
	}
	_, err := b.charge("o1", "pm_card_visa")
	equal(t, "still in force", stripeError(t, err).HTTPStatusCode, 429)
	equal(t, "one left", b.do(http.MethodGet, "/faults", nil, "").body,
		`{"rules":[{"operation":"charge","kind":"rate_limit_429","times":1}]}`+"\n")
	equal(t, "delete", b.do(http.MethodDelete, "/faults", nil, "").status, http.StatusNoContent)
	b.mustCharge("o1", "pm_card_visa")
}

// Ensure a rule for an operation meets that call and no other, by the path and, for the charge, by what it does.
func TestOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pi := b.create("o1", "pm_card_visa")
	calls := map[string]func() int{
		"create":          func() int { return b.post(intents, "", form("confirm", "")).status },
		"create, confirm": func() int { return b.post(intents, "", form()).status },
		"confirm":         func() int { return b.post(intents+"/"+pi.ID+"/confirm", "", nil).status },
		"cancel":          func() int { return b.post(intents+"/"+pi.ID+"/cancel", "", nil).status },
		"retrieve":        func() int { return b.get(intents + "/" + pi.ID).status },
		"list":            func() int { return b.get(intents).status },
		"search":          func() int { return b.get(intents + "/search?query=metadata['a']:'x'").status },
		"refund":          func() int { return b.post("/v1/refunds", "", nil).status },
		"refunds":         func() int { return b.get("/v1/refunds").status },
		"one refund":      func() int { return b.get("/v1/refunds/re_1").status },
		"events":          func() int { return b.get("/v1/events").status },
	}
	for op, meets := range map[string][]string{
		sandbox.OpCreateIntent:   {"create", "create, confirm"},
		sandbox.OpConfirmIntent:  {"confirm"},
		sandbox.OpCharge:         {"confirm", "create, confirm"},
		sandbox.OpCancelIntent:   {"cancel"},
		sandbox.OpRetrieveIntent: {"retrieve"},
		sandbox.OpRefund:         {"refund"},
		sandbox.OpSearch:         {"search"},
		sandbox.OpList:           {"list", "refunds", "one refund", "events"},
		sandbox.OpAny:            slices.Collect(maps.Keys(calls)),
		sandbox.OpEvent:          nil,
	} {
		kind := sandbox.FaultRateLimit429
		if op == sandbox.OpEvent {
			kind = sandbox.FaultLost
		}
		b.faults(rule(op, kind, 0))
		for name, do := range calls {
			equal(t, op+" meets "+name, do() == http.StatusTooManyRequests, slices.Contains(meets, name))
		}
	}
}

// Ensure a 429 says how long to wait when it is asked to, and which limit it was.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	slow := rule(sandbox.OpAny, sandbox.FaultRateLimit429, 1)
	slow.RetryAfter = 7
	b.faults(slow, rule(sandbox.OpAny, sandbox.FaultRateLimit429, 1))
	for _, want := range []string{"7", ""} {
		r := b.post(intents, "k", form())
		equal(t, "status", r.status, http.StatusTooManyRequests)
		equal(t, "Retry-After", r.header.Get("Retry-After"), want)
		equal(t, "reason", r.header.Get("Stripe-Rate-Limited-Reason"), "global-rate")
		equal(t, "request id", strings.HasPrefix(r.header.Get("Request-Id"), "req_"), true)
	}
	equal(t, "key free", b.post(intents, "k", form()).status, http.StatusOK)
}

// Ensure a storm of saved 500s leaves replays of true answers as they are.
func TestSaved500IsForExecutionsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.post(intents, "k", form())
	b.faults(rule(sandbox.OpAny, sandbox.FaultError500, 0))
	equal(t, "replay", b.post(intents, "k", form()).body, first.body)
	equal(t, "refusal", b.post(intents, "k2", form("amount", "1")).status, http.StatusBadRequest)
	equal(t, "execution", b.post(intents, "k3", form()).status, http.StatusInternalServerError)
}
