package sandbox

import (
	"encoding/json"
	"slices"
	"time"
)

// apiVersion is the version of Stripe's API that events are written in: the one of the stripe-go that reads them.
const apiVersion = "2026-03-25.dahlia"

// event is Stripe's Event. Its data is the object as it was at the change, whatever has become of it since.
type event struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"`
	APIVersion string    `json:"api_version"`
	Created    int64     `json:"created"`
	Data       eventData `json:"data"`
	Livemode   bool      `json:"livemode"`
	Pending    int       `json:"pending_webhooks"`
	Request    eventFrom `json:"request"`
	Type       string    `json:"type"`
}

type eventData struct {
	Object json.RawMessage `json:"object"`
}

// eventFrom is the request that caused the event. It has no id where the provider changed the object by itself.
type eventFrom struct {
	ID             *string `json:"id"`
	IdempotencyKey *string `json:"idempotency_key"`
}

func (e *event) ref() (id string, created int64) { return e.ID, e.Created }

func newEvent(kind string, about any, c *change) *event {
	snapshot, err := json.Marshal(about)
	if err != nil {
		panic(err) // plain structs of texts and numbers always have a JSON form
	}
	ev := &event{
		ID: newID("evt"), Object: "event", APIVersion: apiVersion, Created: c.now.Unix(),
		Data: eventData{snapshot}, Pending: 1, Type: kind,
	}
	if c.requestID != "" {
		ev.Request.ID = &c.requestID
	}
	if c.key != "" {
		ev.Request.IdempotencyKey = &c.key
	}
	return ev
}

// charge is what events show of Stripe's Charge.
type charge struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"`
	AmountRefunded int64             `json:"amount_refunded"`
	Currency       string            `json:"currency"`
	Disputed       bool              `json:"disputed"`
	Metadata       map[string]string `json:"metadata"`
	PaymentIntent  string            `json:"payment_intent"`
	Refunded       bool              `json:"refunded"`
	Status         string            `json:"status"`
}

func (st *state) chargeOf(pi *intent) charge {
	left := st.refundable(pi)
	return charge{
		ID: *pi.LatestCharge, Object: "charge", Amount: pi.Amount, AmountRefunded: pi.Amount - left, Currency: pi.Currency,
		Disputed: st.disputes[pi.ID] != nil, Metadata: pi.Metadata, PaymentIntent: pi.ID, Refunded: left == 0,
		Status: pi.chargeStatus(),
	}
}

// dispute is Stripe's Dispute, with the members that this project could meet.
type dispute struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	Reason        string            `json:"reason"`
	Status        string            `json:"status"`
}

// eventLife is how long Stripe can still be asked for an event: https://docs.stripe.com/api/events.
const eventLife = 30 * 24 * time.Hour

func (s *Sandbox) listEvents(c call) answer {
	p := params{form: c.form}
	p.only(append(pagingParams(), "types")...)
	q, types := p.paging(), p.list("types")
	if p.err != nil {
		return p.err.answer("")
	}
	q.from = max(q.from, s.now().Add(-eventLife).Unix())
	return listAnswer(c, "event", &s.state.events, q, func(ev *event) bool {
		return len(types) == 0 || slices.Contains(types, ev.Type)
	})
}
