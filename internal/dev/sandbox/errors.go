package sandbox

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is Stripe's error object.
type apiError struct {
	Type          string  `json:"type"`
	Code          string  `json:"code,omitempty"`
	DeclineCode   string  `json:"decline_code,omitempty"`
	DocURL        string  `json:"doc_url,omitempty"`
	Message       string  `json:"message"`
	Param         string  `json:"param,omitempty"`
	Charge        string  `json:"charge,omitempty"`
	PaymentIntent *intent `json:"payment_intent,omitempty"`

	status     int
	retryAfter int // seconds; 0: the answer does not say
}

// answer wraps the error as Stripe sends it.
func (e *apiError) answer(outcome string) answer {
	shown := *e
	if e.Code != "" {
		shown.DocURL = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(e.Code, "_", "-")
	}
	a := jsonAnswer(e.status, map[string]apiError{"error": shown})
	a.outcome, a.retryAfter = outcome, e.retryAfter
	return a
}

// invalid is the refusal of a parameter, or of a request that the state does not allow.
func invalid(code, param, message string) *apiError {
	return &apiError{
		Type: "invalid_request_error", Code: code, Param: param, Message: message, status: http.StatusBadRequest,
	}
}

// notFound is the answer to an address that names nothing.
func notFound(kind, id, param string) *apiError {
	e := invalid("resource_missing", param, fmt.Sprintf("No such %s: '%s'", kind, id))
	e.status = http.StatusNotFound
	return e
}

func unauthorized() *apiError {
	e := invalid("", "", "No valid API key provided. The sandbox takes any test key: Authorization: Bearer sk_test_…")
	e.status = http.StatusUnauthorized
	return e
}

func internalError() *apiError {
	return &apiError{
		Type: "api_error", Message: "An error occurred in the sandbox, as a fault rule asked.",
		status: http.StatusInternalServerError,
	}
}

// unexpectedState is the refusal of what an intent's state forbids. It carries the intent.
func unexpectedState(pi *intent, message string) *apiError {
	e := invalid("payment_intent_unexpected_state", "", message)
	e.PaymentIntent = pi
	return e
}

// usedBefore has neither a code nor a parameter at Stripe.
func usedBefore() *apiError {
	return invalid("", "", "The provided PaymentMethod was previously used with a PaymentIntent without Customer "+
		"attachment, shared with a connected account without Customer attachment, or was detached from a Customer. It may "+
		"not be used again. To use a PaymentMethod multiple times, you must attach it to a Customer first.")
}

func rateLimited(retryAfter int) *apiError {
	e := invalid("rate_limit", "", "Request rate limit exceeded.")
	e.status, e.retryAfter = http.StatusTooManyRequests, retryAfter
	return e
}

func keyInUse(key string) *apiError {
	return &apiError{
		Type: "idempotency_error", Code: "idempotency_key_in_use", status: http.StatusConflict,
		Message: fmt.Sprintf("There is currently another in-progress request using the idempotency key '%s'.", key),
	}
}

func keyMismatch(key string) *apiError {
	return &apiError{
		Type: "idempotency_error", status: http.StatusBadRequest,
		Message: fmt.Sprintf("Keys for idempotent requests can only be used with the same endpoint and parameters they "+
			"were first used with. Use a key other than '%s' for a different request.", key),
	}
}
