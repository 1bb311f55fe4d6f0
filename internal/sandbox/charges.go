package sandbox

import (
	"net/http"
	"net/url"
	"time"
)

const (
	statusPending   = "pending"
	statusSucceeded = "succeeded"
	statusFailed    = "failed"
)

// intent is Stripe's PaymentIntent, with the members that this project could meet.
type intent struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountReceived     int64             `json:"amount_received"`
	CaptureMethod      string            `json:"capture_method"`
	ClientSecret       string            `json:"client_secret"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	LastPaymentError   *apiError         `json:"last_payment_error"`
	LatestCharge       *string           `json:"latest_charge"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	PaymentMethod      *string           `json:"payment_method"`
	PaymentMethodTypes []string          `json:"payment_method_types"`
	Status             string            `json:"status"`
}

// charge is a checked request to create an intent and, as a rule, to charge its card at once.
type charge struct {
	amount       int64
	currency     string
	confirm      bool
	method       string
	card         card
	failOnAction bool
	metadata     map[string]string
}

func parseCharge(form url.Values) (execution, *apiError) {
	p := params{form: form}
	p.only("amount", "currency", "confirm", "payment_method", "payment_method_types", "error_on_requires_action",
		"metadata", "description", "statement_descriptor_suffix", "automatic_payment_methods", "off_session")
	p.required("amount")
	c := charge{
		amount: p.amount("amount"), currency: p.currency("currency"), confirm: p.boolean("confirm"),
		failOnAction: p.boolean("error_on_requires_action"), metadata: p.metadata(),
	}
	for _, kind := range p.list("payment_method_types") {
		if kind != "card" {
			p.refuse("", "payment_method_types", "The sandbox takes cards only, not "+kind+".")
		}
	}
	if c.failOnAction && !c.confirm {
		p.refuse("", "error_on_requires_action", "error_on_requires_action needs confirm=true.")
	}
	c.readMethod(&p)
	return c.execute, p.err
}

func (c *charge) readMethod(p *params) {
	c.method = p.form.Get("payment_method")
	if c.method == "" {
		if c.confirm {
			p.required("payment_method")
		}
		return
	}
	var known bool
	if c.card, known = lookupCard(c.method); !known {
		p.refuse("resource_missing", "payment_method", "No such PaymentMethod: '"+c.method+"'")
	}
}

func (c charge) execute(st *state, now time.Time, decline bool) answer {
	pi := c.newIntent(now)
	st.Intents = append(st.Intents, pi)
	why := c.card.decline
	if decline {
		why = declined("card_declined", "generic_decline")
	} else if c.card.action && c.failOnAction {
		why = declined("authentication_required", "authentication_required")
	}
	switch {
	case !c.confirm:
	case why != nil:
		return pi.fail(*why).answer("")
	case c.card.action:
		pi.Status = "requires_action"
	default:
		pi.succeed()
	}
	return jsonAnswer(http.StatusOK, pi)
}

func (c charge) newIntent(now time.Time) *intent {
	id := newID("pi")
	pi := &intent{
		ID: id, Object: "payment_intent", Amount: c.amount, CaptureMethod: "automatic",
		ClientSecret: newID(id + "_secret"), Created: now.Unix(), Currency: c.currency, Metadata: c.metadata,
		PaymentMethodTypes: []string{"card"}, Status: "requires_payment_method",
	}
	if c.method != "" {
		pi.PaymentMethod, pi.Status = &c.method, "requires_confirmation"
	}
	return pi
}

func (pi *intent) succeed() {
	pi.Status, pi.AmountReceived, pi.LatestCharge = statusSucceeded, pi.Amount, new(newID("ch"))
}

// fail records a failed attempt on the card. As at Stripe, the intent loses its payment method and the error carries
// the intent.
func (pi *intent) fail(why apiError) *apiError {
	pi.Status, pi.PaymentMethod, pi.LatestCharge = "requires_payment_method", nil, new(newID("ch"))
	why.Charge = *pi.LatestCharge
	pi.LastPaymentError = new(why)
	why.PaymentIntent = pi
	return &why
}
