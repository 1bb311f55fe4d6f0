package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/dev/sandbox"
)

// receiver takes events as a service does, verified by Stripe's own library.
type receiver struct {
	mu      sync.Mutex
	events  []stripe.Event // those with a valid signature
	refused []error
	answer  func(n int) int // the status of the answer to the nth delivery; default 200
	n       int
	secret  string
	url     string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	ev, err := webhook.ConstructEvent(body, req.Header.Get("Stripe-Signature"), r.secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(r.n)
	}
	switch {
	case err != nil:
		r.refused, status = append(r.refused, err), http.StatusBadRequest
	case status == http.StatusOK:
		r.events = append(r.events, ev)
	}
	w.Header().Set("Location", "/") // for a 301: Stripe does not follow it
	w.WriteHeader(status)
}

// receive starts a receiver and has the sandbox deliver to it.
func (b *bench) receive() *receiver {
	b.t.Helper()
	r := &receiver{secret: sandbox.DefaultEventSecret}
	server := httptest.NewServer(r)
	b.t.Cleanup(server.Close)
	b.t.Cleanup(func() { _ = b.Close() }) // first, so that no delivery is under way when the receiver ends
	r.url = server.URL
	b.SetEventsURL(r.url)
	return r
}

// types waits until all is delivered and returns the types of the events in the order of their arrival.
func (b *bench) types(r *receiver) []string {
	b.t.Helper()
	if err := b.WaitEventsDelivered(b.within()); err != nil {
		b.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []string{}
	for _, ev := range r.events {
		out = append(out, string(ev.Type))
	}
	return out
}

// sameSet compares without order, which is not guaranteed.
func sameSet(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	count := map[string]int{}
	for _, g := range got {
		count[g]++
	}
	for _, w := range want {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			t.Errorf("%s: got %v, want %v in any order", what, got, want)
			return
		}
	}
}

// Ensure every change of an intent and a refund is told once, signed by Stripe's scheme, with the object as it was then
// and the request that caused it.
func TestEventsOfAPayment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receive()
	pi := b.create("o1", "pm_card_visa")
	sameSet(t, "created", b.types(r), "payment_intent.created")
	if _, err := b.confirm(pi.ID, "confirm-o1"); err != nil {
		t.Fatal(err)
	}
	re, err := b.refund(pi.ID, "r1", 500)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.FailRefund(re.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.OpenDispute(pi.ID); err != nil {
		t.Fatal(err)
	}
	sameSet(t, "all", b.types(r), "payment_intent.created", "payment_intent.succeeded", "refund.created", "charge.refunded",
		"refund.updated", "refund.failed", "charge.dispute.created")
	first := r.events[0]
	equal(t, "snapshot", first.Data.Object["status"], any("requires_confirmation"))
	equal(t, "object", first.Data.Object["id"], any(pi.ID))
	equal(t, "cause", first.Request.IdempotencyKey, "order:o1:intent")
	equal(t, "version", first.APIVersion, stripe.APIVersion)
	equal(t, "refused", len(r.refused), 0)
}

// Ensure the other ends of an intent are told, too.
func TestEventsOfOtherEnds(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"declined": "payment_intent.payment_failed", "canceled": "payment_intent.canceled",
		"processing": "payment_intent.processing", "requires_action": "payment_intent.requires_action",
	} {
		b := setup(t)
		r := b.receive()
		b.in(state)
		sameSet(t, state, b.types(r), "payment_intent.created", want)
	}
}

// Ensure an event is tried again until it is taken, and not for ever.
func TestDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receive()
	r.answer = func(n int) int { return []int{500, 301, 404, 200}[min(n, 4)-1] }
	b.create("o1", "pm_card_visa")
	sameSet(t, "taken", b.types(r), "payment_intent.created")
	got := b.Deliveries()
	equal(t, "tries", len(got), 4)
	for i, status := range []int{500, 301, 404, 200} {
		equal(t, "status", got[i].Status, status)
		equal(t, "try", got[i].Try, i+1)
		equal(t, "event", got[i].EventID, r.events[0].ID)
	}
}

// Ensure an answer of the API waits for no delivery.
func TestDeliveryBlocksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(stuck.Close)
	t.Cleanup(func() { close(gone) })
	b.SetEventsURL(stuck.URL)
	b.mustCharge("o1", "pm_card_visa")
	b.mustCharge("o2", "pm_card_visa")
	equal(t, "ended", len(b.Deliveries()), 0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.WaitEventsDelivered(b.within()); err != nil { // a closed sandbox gives up
		t.Fatal(err)
	}
}

// Ensure each fault of a delivery does what it says, and that no receiver that verifies is misled by one.
func TestEventFaults(t *testing.T) {
	t.Parallel()
	const created, succeeded = "payment_intent.created", "payment_intent.succeeded"
	for kind, want := range map[string][]string{
		sandbox.FaultLost:       {succeeded},
		sandbox.FaultTwice:      {created, created, succeeded},
		sandbox.FaultLate:       {succeeded, created},
		sandbox.FaultReorder:    {succeeded, created},
		sandbox.FaultForged:     {created, succeeded},
		sandbox.FaultReplayLate: {created, succeeded},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.receive()
			f := sandbox.FaultRule{Operation: sandbox.OpEvent, Kind: kind, Times: 1, EventType: created}
			if kind == sandbox.FaultLate {
				f.DelayMS = 200
			}
			b.faults(f)
			began := time.Now()
			b.mustCharge("o1", "pm_card_visa")
			got := b.types(r)
			sameSet(t, "events", got, want...)
			switch kind {
			case sandbox.FaultReorder:
				equal(t, "order", strings.Join(got, " "), strings.Join(want, " "))
			case sandbox.FaultLate:
				equal(t, "late", time.Since(began) >= 200*time.Millisecond, true)
			}
			equal(t, "refused", len(r.refused), map[string]int{sandbox.FaultForged: 1, sandbox.FaultReplayLate: 1}[kind])
		})
	}
}

// Ensure a forged event bears the true event's id and the opposite of its content, and a late replay a signature that was
// valid once: a receiver that checks less than all of it would believe them.
func TestForgedAndReplayed(t *testing.T) {
	t.Parallel()
	type got struct {
		body      []byte
		signature string
	}
	for kind, check := range map[string]func(t *testing.T, genuine, other got){
		sandbox.FaultForged: func(t *testing.T, genuine, forged got) {
			t.Helper()
			err := webhook.ValidatePayloadIgnoringTolerance(forged.body, forged.signature, sandbox.DefaultEventSecret)
			equal(t, "signature", err, webhook.ErrNoValidSignature)
			var ev, told stripe.Event
			_, _ = json.Unmarshal(forged.body, &ev), json.Unmarshal(genuine.body, &told)
			equal(t, "id", ev.ID, told.ID)
			equal(t, "type", ev.Type, stripe.EventTypePaymentIntentSucceeded)
			equal(t, "status", ev.Data.Object["status"], any("succeeded"))
		},
		sandbox.FaultReplayLate: func(t *testing.T, genuine, late got) {
			t.Helper()
			equal(t, "body", string(late.body), string(genuine.body))
			equal(t, "tolerance", webhook.ValidatePayload(late.body, late.signature, sandbox.DefaultEventSecret),
				webhook.ErrTooOld)
			equal(t, "signature", webhook.ValidatePayloadIgnoringTolerance(late.body, late.signature,
				sandbox.DefaultEventSecret), nil)
		},
	} {
		b := setup(t)
		arrived := make(chan got, 2)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			arrived <- got{body, r.Header.Get("Stripe-Signature")}
		}))
		t.Cleanup(server.Close)
		b.SetEventsURL(server.URL)
		b.faults(rule(sandbox.OpEvent, kind, 1))
		b.create("o1", "pm_card_visa")
		one, other := <-arrived, <-arrived
		if webhook.ValidatePayload(one.body, one.signature, sandbox.DefaultEventSecret) != nil {
			one, other = other, one
		}
		check(t, one, other)
	}
}

// Ensure each of two secrets verifies an event while one of them is rotated.
func TestTwoSecrets(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"whsec_old", "whsec_new"} {
		b := setup(t)
		r := b.receive()
		r.secret = secret
		b.SetEventSecrets("whsec_old", "whsec_new")
		b.create("o1", "pm_card_visa")
		sameSet(t, secret, b.types(r), "payment_intent.created")
		equal(t, "refused", len(r.refused), 0)
	}
}

// Ensure events can be listed by time and type, delivered or not: that is how a service catches up.
func TestListEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustCharge("o1", "pm_card_visa")
	b.clock.advance(time.Hour)
	since := b.clock.Now().Unix()
	b.mustCharge("o2", "pm_card_visa")
	_, _ = b.charge("o3", "pm_card_chargeDeclined")
	list := func(p *stripe.EventListParams) (types []string) {
		for ev, err := range b.stripe.V1Events.List(t.Context(), p).All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, string(ev.Type))
		}
		return types
	}
	const created, succeeded, failed = "payment_intent.created", "payment_intent.succeeded", "payment_intent.payment_failed"
	equal(t, "all", strings.Join(list(&stripe.EventListParams{}), " "),
		strings.Join([]string{failed, created, succeeded, created, succeeded, created}, " "))
	recent := &stripe.EventListParams{
		CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since},
		Types:        []*string{stripe.String(succeeded), stripe.String(failed)},
	}
	recent.Limit = stripe.Int64(1)
	equal(t, "recent", strings.Join(list(recent), " "), failed+" "+succeeded)
	b.AdvanceClock(30 * 24 * time.Hour)
	equal(t, "after 30 days", len(list(&stripe.EventListParams{})), 4)
	b.AdvanceClock(time.Hour)
	equal(t, "after 30 days and an hour", len(list(&stripe.EventListParams{})), 0)
}
