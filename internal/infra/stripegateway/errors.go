package stripegateway

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v85"
)

// refused is nil when the provider's answer is a definite no that moved no money: a declined card, or a request that
// it will never accept. Everything else is an unknown outcome: no answer, 5xx, 409 (the same key is at work), 429,
// 401 and 403 (our own credentials, which an operator can mend), and an idempotency_error (the key is known with
// other parameters, so something may have happened under it).
func refused(doing string, err error) error {
	var e *stripe.Error
	if !errors.As(err, &e) {
		return unknown(doing, err)
	}
	card := e.Type == stripe.ErrorTypeCard
	invalid := e.Type == stripe.ErrorTypeInvalidRequest &&
		(e.HTTPStatusCode == http.StatusBadRequest || e.HTTPStatusCode == http.StatusNotFound)
	if card || invalid {
		return nil
	}
	return unknown(doing, err)
}

// unknown tells what happened without the provider's text, which can name a person's card.
func unknown(doing string, err error) error {
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		return fmt.Errorf("%s: provider answered %d %s %s (request %s)", doing, e.HTTPStatusCode, e.Type, e.Code, e.RequestID)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
