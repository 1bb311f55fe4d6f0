package sandbox

import (
	"fmt"
	"net/http"
	"time"
)

// refund is Stripe's Refund, with the members that this project could meet. It never changes: see series.
type refund struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        *string           `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	FailureReason string            `json:"failure_reason,omitempty"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	PendingReason string            `json:"pending_reason,omitempty"`
	Status        string            `json:"status"`
}

func (r *refund) ref() (id string, created int64) { return r.ID, r.Created }

// refunding is a checked request to give money back. Amount 0 means all that is left.
type refunding struct {
	intent   string
	amount   int64
	metadata map[string]string
}

func parseRefund(c call) (execution, *apiError) {
	p := params{form: c.form}
	p.only("payment_intent", "amount", "metadata")
	r := refunding{
		intent: p.required("payment_intent"), amount: p.amount("amount"), metadata: p.metadata(),
	}
	return r.execute, p.err
}

func (r refunding) execute(c *change) answer {
	pi := c.st.intents.get(r.intent)
	if pi == nil {
		return invalid("resource_missing", "payment_intent", "No such payment_intent: '"+r.intent+"'").answer("")
	}
	if refusal := r.fit(pi, c.st); refusal != nil {
		return refusal.answer("")
	}
	made := r.newRefund(pi, c.now, c.decline)
	c.putRefund(made, "refund.created")
	if made.Status == statusFailed {
		c.tell("refund.failed", made)
	}
	c.tell("charge.refunded", c.st.chargeOf(pi))
	return jsonAnswer(http.StatusOK, made)
}

// fit fills in the amount and refuses to give back more than is left.
func (r *refunding) fit(pi *intent, st *state) *apiError {
	left := st.refundable(pi)
	switch {
	case pi.Status != statusSucceeded:
		return invalid("", "", "This PaymentIntent ("+pi.ID+") does not have a successful charge to refund.")
	case st.disputes[pi.ID] != nil:
		return invalid("charge_disputed", "", "Charge "+*pi.LatestCharge+" has been charged back; cannot issue a refund.")
	case left == 0:
		return invalid("charge_already_refunded", "", "Charge "+*pi.LatestCharge+" has already been refunded.")
	case r.amount > left:
		return invalid("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			money(r.amount, pi.Currency), money(left, pi.Currency)))
	case r.amount == 0:
		r.amount = left
	}
	return checkDigits(pi.Currency, r.amount)
}

func (r refunding) newRefund(pi *intent, now time.Time, decline bool) *refund {
	made := &refund{
		ID: newID("re"), Object: "refund", Amount: r.amount, Charge: pi.LatestCharge, Created: now.Unix(),
		Currency: pi.Currency, Metadata: r.metadata, PaymentIntent: pi.ID,
	}
	if decline {
		return made.as(statusFailed)
	}
	return made.as(pi.card().refundStarts)
}

// as is the refund with another status.
func (r *refund) as(status string) *refund {
	next := *r
	next.Status, next.FailureReason, next.PendingReason = status, "", ""
	switch status {
	case statusFailed:
		next.FailureReason = "expired_or_canceled_card"
	case statusPending:
		next.PendingReason = "processing"
	}
	return &next
}

// unsettled tells whether a refund has not yet become what its card says it becomes. Its first reader moves it on.
func (st *state) unsettled(r *refund) bool {
	return r.Status != statusFailed && r.Status != st.intents.get(r.PaymentIntent).card().refundEnds
}

// settle moves a refund to a status and tells of it. A refund that fails gives its amount back to the charge.
func (c *change) settle(r *refund, status string) *refund {
	next := r.as(status)
	types := []string{"refund.updated"}
	if status == statusFailed {
		types = append(types, "refund.failed")
	}
	c.putRefund(next, types...)
	return next
}

// refundable is what is left of a charge. A failed refund gave nothing back.
func (st *state) refundable(pi *intent) int64 {
	left := pi.Amount
	for _, id := range st.refundsOf[pi.ID] {
		if r := st.refunds.get(id); r.Status != statusFailed {
			left -= r.Amount
		}
	}
	return left
}

// card returns the behaviour of the card that was charged.
func (pi *intent) card() card {
	c, _ := lookupCard(*pi.PaymentMethod)
	return c
}
