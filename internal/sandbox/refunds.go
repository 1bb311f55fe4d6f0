package sandbox

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// refund is Stripe's Refund, with the members that this project could meet.
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
	Reason        *string           `json:"reason"`
	Status        string            `json:"status"`
}

// refunding is a checked request to give money back. Amount 0 means all that is left.
type refunding struct {
	intent   string
	amount   int64
	reason   *string
	metadata map[string]string
}

func parseRefund(form url.Values) (execution, *apiError) {
	p := params{form: form}
	p.only("payment_intent", "amount", "reason", "metadata")
	r := refunding{
		intent: p.required("payment_intent"), amount: p.amount("amount"), metadata: p.metadata(),
		reason: p.oneOf("reason", "duplicate", "fraudulent", "requested_by_customer"),
	}
	return r.execute, p.err
}

func (r refunding) execute(st *state, now time.Time, decline bool) answer {
	pi := st.intent(r.intent)
	if pi == nil {
		return invalid("resource_missing", "payment_intent", "No such payment_intent: '"+r.intent+"'").answer("")
	}
	if pi.Status != statusSucceeded {
		return invalid("", "", "This PaymentIntent ("+pi.ID+") does not have a successful charge to refund.").answer("")
	}
	if refusal := r.fit(pi, st.refundable(pi)); refusal != nil {
		return refusal.answer("")
	}
	made := r.newRefund(pi, now, decline)
	st.Refunds = append(st.Refunds, made)
	return jsonAnswer(http.StatusOK, made)
}

// fit fills in the amount and refuses to give back more than is left.
func (r *refunding) fit(pi *intent, left int64) *apiError {
	if left == 0 {
		return invalid("charge_already_refunded", "", "Charge "+*pi.LatestCharge+" has already been refunded.")
	}
	if r.amount > left {
		return invalid("", "amount",
			fmt.Sprintf("Refund amount (%d) is greater than unrefunded amount on charge (%d)", r.amount, left))
	}
	if r.amount == 0 {
		r.amount = left
	}
	return nil
}

func (r refunding) newRefund(pi *intent, now time.Time, decline bool) *refund {
	made := &refund{
		ID: newID("re"), Object: "refund", Amount: r.amount, Charge: pi.LatestCharge, Created: now.Unix(),
		Currency: pi.Currency, Metadata: r.metadata, PaymentIntent: pi.ID, Reason: r.reason,
	}
	if decline {
		made.become(statusFailed)
	} else {
		made.become(pi.card().refundStarts)
	}
	return made
}

func (r *refund) become(status string) {
	r.Status, r.FailureReason, r.PendingReason = status, "", ""
	switch status {
	case statusFailed:
		r.FailureReason = "expired_or_canceled_card"
	case statusPending:
		r.PendingReason = "processing"
	}
}

// settle moves a refund to where its card says it ends. It reports whether that changed anything.
func (st *state) settle(r *refund) bool {
	ends := st.intent(r.PaymentIntent).card().refundEnds
	if r.Status == ends || r.Status == statusFailed { // a failed refund stays failed
		return false
	}
	r.become(ends)
	return true
}

// refundable is what is left of a charge. A failed refund gave nothing back.
func (st *state) refundable(pi *intent) int64 {
	left := pi.Amount
	for _, r := range st.Refunds {
		if r.PaymentIntent == pi.ID && r.Status != statusFailed {
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
