package stripegateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/app"
)

// providerDown marks an error that does not depend on the request: no answer or an unreadable one, 5xx, 429, 401 and
// 403. It counts as a failure for the circuit breaker.
type providerDown struct{ error }

func (p providerDown) Unwrap() error { return p.error }

// readFailed classifies the error of a call that has no idempotency key, by the answer's status, type and code alone.
func readFailed(ctx context.Context, doing string, err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return providerDown{fmt.Errorf("%s: %w", doing, noAnswer(ctx, err))}
	}
	answer := fmt.Sprintf("%s: provider answered %d %s (request %s)", doing, e.HTTPStatusCode, codesOf(e), requestID(e))
	switch status := e.HTTPStatusCode; {
	case status == http.StatusTooManyRequests:
		return providerDown{fmt.Errorf("%s: %w", answer, &app.RateLimitedError{After: retryAfter(e.LastResponse.Header)})}
	case status >= http.StatusInternalServerError, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return providerDown{errors.New(answer)}
	case isRefusal(e):
		return fmt.Errorf("%s: %w", answer, &app.RefusedError{Code: codesOf(e), Final: isFinal(e)})
	default:
		return errors.New(answer)
	}
}

// writeFailed classifies the error of a call that has an idempotency key.
func writeFailed(ctx context.Context, doing string, err error) error {
	failed := readFailed(ctx, doing, err)
	e, ok := errors.AsType[*stripe.Error](err)
	if ok && (e.HTTPStatusCode >= http.StatusInternalServerError ||
		e.HTTPStatusCode == http.StatusBadRequest && e.Type == stripe.ErrorTypeIdempotency) {
		return fmt.Errorf("%w: %w", app.ErrKeyUnusable, failed)
	}
	return failed
}

// isRefusal reports whether an answer is a definite refusal. An answer without Stripe's error type comes from
// elsewhere: a proxy's 404 is not a refusal.
func isRefusal(e *stripe.Error) bool {
	switch e.HTTPStatusCode {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound:
		return e.Type == stripe.ErrorTypeCard || e.Type == stripe.ErrorTypeInvalidRequest
	default:
		return false
	}
}

func isFinal(e *stripe.Error) bool {
	return e.Code == stripe.ErrorCodeChargeAlreadyRefunded || e.Code == stripe.ErrorCodeChargeDisputed
}

// codesOf returns "type/code/decline_code", without missing codes at the end.
func codesOf(e *stripe.Error) string {
	return joinCodes(string(e.Type), string(e.Code), string(e.DeclineCode))
}

func joinCodes(codes ...string) string {
	for i, code := range codes {
		codes[i] = token(code)
	}
	return strings.TrimRight(strings.Join(codes, "/"), "/")
}

// Stripe's types, codes, statuses and reasons are lower case. Its keys, tokens and ids are not, so that an answer which
// quotes one of them as a code does not bring it into the log.
var (
	safeToken     = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)
	safeRequestID = regexp.MustCompile(`^req_[A-Za-z0-9]{1,60}$`)
)

// token returns s if it looks like a provider code of at most 64 bytes, otherwise an empty string.
func token(s string) string {
	if !safeToken.MatchString(s) {
		return ""
	}
	return s
}

// requestID returns the provider's request id if it looks like one, otherwise an empty string.
func requestID(e *stripe.Error) string {
	if !safeRequestID.MatchString(e.RequestID) {
		return ""
	}
	return e.RequestID
}

// noAnswer describes why no answer came in this service's own words, because errors of net/http and stripe-go can quote
// response data.
func noAnswer(ctx context.Context, err error) error {
	var timeout net.Error
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("provider did not answer in time: %w", context.DeadlineExceeded)
	case isOp:
		return errors.New(op.Error())
	case errors.Is(err, errTooLarge):
		return errTooLarge
	case errors.Is(err, errRedirect):
		return errRedirect
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("provider cut the connection")
	default:
		return errUnreadable
	}
}

var errUnreadable = errors.New("provider's answer cannot be read")

// The bounds of the wait that a 429 can cause.
const (
	minWait = time.Second
	maxWait = 5 * time.Minute
)

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a date, which is compared with the answer's own
// Date and not with the clock of this machine. Zero: the header is missing or invalid.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil || errors.Is(err, strconv.ErrRange) { // then it is the largest
		seconds = min(max(seconds, 0), int(maxWait.Seconds()))
		return max(time.Duration(seconds)*time.Second, minWait)
	}
	at, err := http.ParseTime(value)
	now, errDate := http.ParseTime(h.Get("Date"))
	if err != nil || errDate != nil {
		return 0
	}
	return min(max(at.Sub(now), minWait), maxWait)
}
