package sandbox

import (
	"net/http"
	"time"
)

// The states of a PaymentIntent, of a charge and of a refund:
// https://docs.stripe.com/payments/paymentintents/lifecycle.
const (
	statusNeedsMethod  = "requires_payment_method"
	statusNeedsConfirm = "requires_confirmation"
	statusNeedsAction  = "requires_action"
	statusProcessing   = "processing"
	statusCanceled     = "canceled"
	statusPending      = "pending"
	statusSucceeded    = "succeeded"
	statusFailed       = "failed"
)

// intent is Stripe's PaymentIntent, with the members that this project could meet. It never changes: see series.
type intent struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountReceived     int64             `json:"amount_received"`
	CanceledAt         *int64            `json:"canceled_at"`
	CaptureMethod      string            `json:"capture_method"`
	ClientSecret       string            `json:"client_secret"`
	ConfirmationMethod string            `json:"confirmation_method"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	LastPaymentError   *apiError         `json:"last_payment_error"`
	LatestCharge       *string           `json:"latest_charge"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	NextAction         *nextAction       `json:"next_action"`
	PaymentMethod      *string           `json:"payment_method"`
	PaymentMethodTypes []string          `json:"payment_method_types"`
	Status             string            `json:"status"`
}

// nextAction is what the customer would have to do. The sandbox never sees it done.
type nextAction struct {
	Type string `json:"type"`
}

func (pi *intent) ref() (id string, created int64) { return pi.ID, pi.Created }

// chargeStatus is that of the latest attempt on the card.
func (pi *intent) chargeStatus() string {
	switch pi.Status {
	case statusSucceeded:
		return statusSucceeded
	case statusProcessing:
		return statusPending
	default:
		return statusFailed
	}
}

// creation is a checked request to create an intent, and perhaps to confirm it at once.
type creation struct {
	amount   int64
	currency string
	metadata map[string]string
	confirm  bool
	confirmation
}

func parseCreate(c call) (execution, *apiError) {
	p := params{form: c.form}
	p.only("amount", "currency", "confirm", "payment_method", "payment_method_types", "error_on_requires_action", "metadata")
	p.required("amount")
	n := creation{
		amount: p.amount("amount"), currency: p.currency("currency"), confirm: p.boolean("confirm"),
		metadata: p.metadata(), confirmation: readConfirmation(&p),
	}
	for _, kind := range p.list("payment_method_types") {
		if kind != "card" {
			p.refuse("", "payment_method_types", "The sandbox takes cards only, not "+kind+".")
		}
	}
	if n.failOnAction && !n.confirm {
		p.refuse("", "error_on_requires_action", "error_on_requires_action needs confirm=true.")
	}
	if n.confirm {
		p.required("payment_method")
	}
	if p.err == nil {
		p.err = checkAmount(n.currency, n.amount)
	}
	return n.execute, p.err
}

func (n creation) execute(c *change) answer {
	pi := n.newIntent(c.now)
	if n.confirm && n.card.used {
		return usedBefore().answer("")
	}
	c.putIntent(pi, "payment_intent.created")
	if n.confirm {
		return n.charge(c, pi)
	}
	return jsonAnswer(http.StatusOK, pi)
}

func (n creation) newIntent(now time.Time) *intent {
	id := newID("pi")
	pi := &intent{
		ID: id, Object: "payment_intent", Amount: n.amount, CaptureMethod: "automatic", ConfirmationMethod: "automatic",
		ClientSecret: newID(id + "_secret"), Created: now.Unix(), Currency: n.currency,
		Metadata: n.metadata, PaymentMethodTypes: []string{"card"}, Status: statusNeedsMethod,
	}
	if n.method != "" {
		pi.PaymentMethod, pi.Status = &n.method, statusNeedsConfirm
	}
	return pi
}
