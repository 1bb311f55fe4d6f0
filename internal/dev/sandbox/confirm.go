package sandbox

import (
	"fmt"
	"net/http"
)

// confirmation is a checked request to charge the card of an intent.
type confirmation struct {
	method       string // empty: the one that the intent has
	card         card
	failOnAction bool
}

func parseConfirm(c call) (execution, *apiError) {
	p := params{form: c.form}
	p.only("payment_method", "error_on_requires_action")
	asked := readConfirmation(&p)
	id := c.req.PathValue("id")
	return func(c *change) answer { return asked.execute(c, id) }, p.err
}

// readConfirmation reads what creating and confirming have in common.
func readConfirmation(p *params) confirmation {
	asked := confirmation{method: p.form.Get("payment_method"), failOnAction: p.boolean("error_on_requires_action")}
	if asked.method == "" {
		return asked
	}
	var known bool
	if asked.card, known = lookupCard(asked.method); !known {
		p.refuse("resource_missing", "payment_method", "No such PaymentMethod: '"+asked.method+"'")
	}
	return asked
}

func (asked confirmation) execute(c *change, id string) answer {
	pi := c.st.intents.get(id)
	if pi == nil {
		return notFound("payment_intent", id, "intent").answer("")
	}
	if refusal := asked.refuse(pi); refusal != nil {
		return refusal.answer("")
	}
	next := *pi
	if asked.method != "" {
		next.PaymentMethod = &asked.method
	}
	asked.card, _ = lookupCard(*next.PaymentMethod)
	if asked.card.used {
		return usedBefore().answer("")
	}
	return asked.charge(c, &next)
}

// refuse says why an intent in its state cannot be confirmed.
func (asked confirmation) refuse(pi *intent) *apiError {
	switch pi.Status {
	case statusSucceeded:
		return unexpectedState(pi,
			"You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
	case statusProcessing, statusCanceled:
		return unexpectedState(pi, fmt.Sprintf("You cannot confirm this PaymentIntent because it has a status of %s. Only a "+
			"PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, requires_action.",
			pi.Status))
	}
	if asked.method == "" && pi.PaymentMethod == nil {
		return unexpectedState(pi, "You cannot confirm this PaymentIntent because it's missing a payment method. You can "+
			"either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly "+
			"with a payment method or ConfirmationToken.")
	}
	return nil
}

// charge tries the card and puts what has become of the intent, of which it gets a copy.
func (asked confirmation) charge(c *change, pi *intent) answer {
	why := asked.card.decline
	if c.decline {
		why = declined("card_declined", "generic_decline")
	} else if asked.card.action && asked.failOnAction {
		why = declined("authentication_required", "authentication_required")
	}
	next := *pi
	next.NextAction = nil
	switch {
	case why != nil:
		return next.fail(c, *why).answer("")
	case asked.card.action:
		next.Status, next.NextAction = statusNeedsAction, &nextAction{Type: "use_stripe_sdk"}
		c.putIntent(&next, "payment_intent.requires_action")
	case c.process:
		next.Status, next.LatestCharge = statusProcessing, new(newID("ch"))
		c.putIntent(&next, "payment_intent.processing")
	default:
		next.LatestCharge = new(newID("ch"))
		next.succeed(c)
	}
	return jsonAnswer(http.StatusOK, &next)
}

// succeed makes the intent's latest attempt a success.
func (pi *intent) succeed(c *change) {
	pi.Status, pi.AmountReceived, pi.LastPaymentError = statusSucceeded, pi.Amount, nil
	c.putIntent(pi, "payment_intent.succeeded")
}

// fail records a failed attempt on the card. As at Stripe, the intent loses its payment method and the error carries
// the intent.
func (pi *intent) fail(c *change, why apiError) *apiError {
	if pi.Status != statusProcessing {
		pi.LatestCharge = new(newID("ch"))
	}
	why.Charge = *pi.LatestCharge
	pi.Status, pi.PaymentMethod, pi.LastPaymentError = statusNeedsMethod, nil, new(why)
	c.putIntent(pi, "payment_intent.payment_failed")
	why.PaymentIntent = pi
	return &why
}

// parseCancel reads a request to cancel an intent. Stripe cancels one in processing "in rare cases"; the sandbox never.
func parseCancel(c call) (execution, *apiError) {
	p := params{form: c.form}
	p.only()
	id := c.req.PathValue("id")
	return func(c *change) answer { return cancel(c, id) }, p.err
}

func cancel(c *change, id string) answer {
	pi := c.st.intents.get(id)
	if pi == nil {
		return notFound("payment_intent", id, "intent").answer("")
	}
	switch pi.Status {
	case statusNeedsMethod, statusNeedsConfirm, statusNeedsAction:
	default:
		return unexpectedState(pi, fmt.Sprintf("You cannot cancel this PaymentIntent because it has a status of %s. Only a "+
			"PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, "+
			"requires_confirmation, requires_action, processing.", pi.Status)).answer("")
	}
	next := *pi
	next.Status, next.CanceledAt, next.NextAction = statusCanceled, new(c.now.Unix()), nil
	c.putIntent(&next, "payment_intent.canceled")
	return jsonAnswer(http.StatusOK, &next)
}
