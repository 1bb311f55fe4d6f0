package stripegateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/stripe/stripe-go/v85"
)

// refused is the reason of a definite no that moved no money, for the log. Everything else is an error: an outcome that is
// not known, or that an operator can mend. Those are no answer, 5xx, 409 (the same key is at work), 429, 401 and 403 (our
// own credentials), an idempotency_error (the key is known with other parameters, so something may have happened under
// it), and every refusal that final does not name: a currency that our account cannot take must not cancel orders.
func refused(doing string, err error, final func(*stripe.Error) bool) (reason string, unknownOutcome error) {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok || !final(e) {
		return "", unknown(doing, err)
	}
	return fmt.Sprintf("%s %s %s (request %s)", e.Type, e.Code, e.DeclineCode, e.RequestID), nil
}

// chargeRefused: the card is declined, or the caller has named a payment method or an amount that cannot be charged.
func chargeRefused(e *stripe.Error) bool {
	return e.Type == stripe.ErrorTypeCard || invalid(e, "payment_method", "amount")
}

// refundRefused: the charge cannot give that much back, because it has already, or has been disputed.
func refundRefused(e *stripe.Error) bool {
	return invalid(e, "amount") ||
		invalid(e) && (e.Code == stripe.ErrorCodeChargeAlreadyRefunded || e.Code == stripe.ErrorCodeChargeDisputed)
}

// invalid tells whether a request was refused because of one of the parameters; none: whatever the reason.
func invalid(e *stripe.Error, params ...string) bool {
	return e.Type == stripe.ErrorTypeInvalidRequest &&
		(e.HTTPStatusCode == http.StatusBadRequest || e.HTTPStatusCode == http.StatusNotFound) &&
		(len(params) == 0 || slices.Contains(params, e.Param))
}

// sick is an error that says that the provider is not well, or will not have us, whatever it is asked: no answer, 5xx, 429,
// 401 and 403.
type sick struct{ error }

func (s sick) Unwrap() error { return s.error }

// unknown tells what happened without the provider's text, which can name a person's card.
func unknown(doing string, err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return sick{fmt.Errorf("%s: %w", doing, err)}
	}
	answered := fmt.Errorf("%s: provider answered %d %s %s (request %s)", doing, e.HTTPStatusCode, e.Type, e.Code, e.RequestID)
	switch s := e.HTTPStatusCode; {
	case s >= http.StatusInternalServerError, s == http.StatusTooManyRequests, s == http.StatusUnauthorized, s == http.StatusForbidden:
		return sick{answered}
	default:
		return answered
	}
}
