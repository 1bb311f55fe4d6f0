package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// faults switches faults on at the provider, until the part of the run has ended.
func (r *Run) faults(rules ...sandbox.FaultRule) {
	r.must(r.Sandbox.SetFaults(rules))
	r.Cleanup(r.Sandbox.ClearFaults)
}

// lostEvents keeps the provider's events from the service, which would learn of a charge by them before a retry does.
func lostEvents() sandbox.FaultRule {
	return sandbox.FaultRule{Operation: sandbox.OpEvent, Kind: sandbox.FaultLost}
}

// charged waits until the provider has charged an order, whether or not the service knows.
func (r *Run) charged(id openapi.OrderID) {
	r.until("the provider's charge", func() bool { return r.account(id).charges > 0 })
}

// attempts is what the provider was asked to change for an order, in order.
func (r *Run) attempts(id openapi.OrderID) (found []sandbox.Attempt) {
	for _, a := range r.Sandbox.Attempts() {
		if strings.Contains(a.IdempotencyKey, id.String()) {
			found = append(found, a)
		}
	}
	return found
}

// confirmations is the attempts that can charge.
func (r *Run) confirmations(id openapi.OrderID) (found []sandbox.Attempt) {
	for _, a := range r.attempts(id) {
		if strings.HasSuffix(a.Path, "/confirm") {
			found = append(found, a)
		}
	}
	return found
}

// showAttempts tells each attempt without the intent's and the order's id.
func (r *Run) showAttempts(id openapi.OrderID) {
	for _, a := range r.attempts(id) {
		_, key, _ := strings.Cut(a.IdempotencyKey, id.String())
		r.say("provider", "POST %s   Idempotency-Key: order:…%s   %s", withoutID(a.Path), key, a.Outcome)
	}
}

// withoutID is a path of the provider with dots for the id in it.
func withoutID(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "pi_") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// noJobs waits until no job of an order is alive.
func (r *Run) noJobs(id openapi.OrderID) {
	r.until("the end of the order's jobs", func() bool {
		return r.Count(r, `river_job WHERE args->>'order_id' = $1 AND `+aliveJob, id.String()) == 0
	})
}

// repeatedEvent delivers an event several times at once. The provider's own deliveries are lost meanwhile.
func repeatedEvent(r *Run) {
	n := r.knobs["deliveries"]
	r.faults(lostEvents())
	id := r.bought(tea, 1)
	event := r.eventOf(id)
	before := must2(r.quiet().GetPayment(r.ctx, id))(r)
	_, jobs := r.received(event)
	r.mark("provider", "delivers %s %d times at once", event.ID, n)
	for _, err := range testkit.Receive(testkit.Together(n, func(int) error { return r.deliver(event.raw) }), n) {
		r.must(err)
	}
	kept, after := r.received(event)
	equal(r, 1, kept, "all were answered 200, and the event is kept once")
	equal(r, jobs+1, after, "it has left one job")
	r.noJobs(id)
	equal(r, before.ETag, must2(r.quiet().GetPayment(r.ctx, id))(r).ETag,
		"the job asked the provider and found nothing new: the payment is unchanged")
	r.chargedOnce(id, teaPrice)
}

// providerEvent is the success of an order's charge, as the provider tells it.
type providerEvent struct {
	ID   string
	Type string
	Data struct {
		Object struct {
			ID       string
			Metadata map[string]string
		}
	}
	raw json.RawMessage
}

// eventOf finds the event of an order's charge in the provider's list.
func (r *Run) eventOf(id openapi.OrderID) providerEvent {
	request := httptest.NewRequestWithContext(r.ctx, http.MethodGet, "/v1/events?limit=100", nil)
	request.Header.Set("Authorization", "Bearer "+r.Env["STRIPE_API_KEY"])
	answer := httptest.NewRecorder()
	r.Sandbox.Handler().ServeHTTP(answer, request)
	var list struct{ Data []json.RawMessage }
	r.must(json.Unmarshal(answer.Body.Bytes(), &list))
	for _, raw := range list.Data {
		e := providerEvent{raw: raw}
		r.must(json.Unmarshal(raw, &e))
		if e.Type == "payment_intent.succeeded" && e.Data.Object.Metadata["order_id"] == id.String() {
			return e
		}
	}
	r.must(fmt.Errorf("the provider lists no event of order %s", id))
	return providerEvent{}
}

// received counts an event in the inbox, and the jobs that look at its intent.
func (r *Run) received(e providerEvent) (kept, jobs int) {
	return r.Count(r, `provider_events WHERE event_id = $1`, e.ID),
		r.Count(r, `river_job WHERE kind = 'settle-payment' AND args->>'intent_id' = $1`, e.Data.Object.ID)
}

// deliver posts an event, as the provider does, under a signature of the provider's.
func (r *Run) deliver(event []byte) error {
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: event, Secret: r.Env["STRIPE_WEBHOOK_SECRET"], Timestamp: time.Now(),
	})
	request, err := http.NewRequestWithContext(r.ctx, http.MethodPost, r.EventsURL, strings.NewReader(string(event)))
	if err != nil {
		return fmt.Errorf("deliver event: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Stripe-Signature", signed.Header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("deliver event: %w", err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		return fmt.Errorf("deliver event: %d %s", response.StatusCode, body)
	}
	return nil
}
