package stripegateway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/app"
)

// EventParser implements app.EventParser.
type EventParser struct {
	secrets   []string
	tolerance time.Duration
}

// NewEventParser makes a parser that accepts an event signed with any of the secrets, at most tolerance ago (zero: five
// minutes). During a rotation there are two secrets. Empty secrets are ignored, because anyone could sign with them.
func NewEventParser(tolerance time.Duration, secrets ...string) *EventParser {
	p := &EventParser{tolerance: tolerance}
	for _, secret := range secrets {
		if secret != "" {
			p.secrets = append(p.secrets, secret)
		}
	}
	return p
}

// errUnreadableEvent replaces stripe-go's error, which can quote the event.
var errUnreadableEvent = errors.New("provider event cannot be read")

// ParseEvent implements app.EventParser.
func (p *EventParser) ParseEvent(body []byte, signature string) (app.ProviderEvent, error) {
	for _, secret := range p.secrets {
		// The account sets the API version of the webhook endpoint. The fields that are read here are the same in all
		// versions.
		event, err := webhook.ConstructEventWithOptions(body, signature, secret,
			webhook.ConstructEventOptions{Tolerance: p.tolerance, IgnoreAPIVersionMismatch: true})
		switch {
		case err == nil:
			return eventOf(event)
		case !isSignatureError(err):
			return app.ProviderEvent{}, errUnreadableEvent
		}
	}
	return app.ProviderEvent{}, app.ErrInvalidSignature
}

func isSignatureError(err error) bool {
	return errors.Is(err, webhook.ErrNotSigned) || errors.Is(err, webhook.ErrInvalidHeader) ||
		errors.Is(err, webhook.ErrNoValidSignature) || errors.Is(err, webhook.ErrTooOld)
}

// eventOf reads the few fields of an event that this service uses. Missing or unknown fields of the object are not
// errors.
func eventOf(e stripe.Event) (app.ProviderEvent, error) {
	kind := token(string(e.Type))
	if !validID(e.ID) || kind == "" {
		return app.ProviderEvent{}, fmt.Errorf("%w: it has no id or no type", errUnreadableEvent)
	}
	event := app.ProviderEvent{ID: e.ID, Type: kind, Dispute: strings.HasPrefix(kind, "charge.dispute.")}
	if e.Data != nil {
		event.Ref, event.IntentID = refOf(metadataOf(e.Data.Object)), intentIDOf(e.Data.Object)
	}
	return event, nil
}

func metadataOf(object map[string]any) map[string]string {
	members, _ := object["metadata"].(map[string]any)
	tenant, _ := members[metaTenant].(string)
	order, _ := members[metaOrder].(string)
	return map[string]string{metaTenant: tenant, metaOrder: order}
}

// intentIDOf is the id of an intent, or of the intent that a refund, a charge or a dispute belongs to.
func intentIDOf(object map[string]any) string {
	of := object["payment_intent"]
	if object["object"] == "payment_intent" {
		of = object
	}
	if expanded, ok := of.(map[string]any); ok {
		of = expanded["id"]
	}
	if id, ok := of.(string); ok && validID(id) {
		return id
	}
	return ""
}
