package httpapi

import (
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// The header names that the contract uses.
const (
	headerIdempotencyKey     = "Idempotency-Key"
	headerIdempotentReplayed = "Idempotent-Replayed"
	headerRequestID          = "Request-Id"
	headerIfMatch            = "If-Match"
	headerIfNoneMatch        = "If-None-Match"
	maxKey                   = 255
)

// checkHeaders validates the client key and the preconditions before the generated code does, because they have problem
// codes of their own. Several lines of a list header count as one list (RFC 9110, section 5.3).
func checkHeaders(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	op := operationOf(r.Context())
	if op.keyed {
		if err := checkKey(r.Header.Values(headerIdempotencyKey)); err != nil {
			return r, err
		}
	}
	for _, name := range []string{headerIfMatch, headerIfNoneMatch} {
		if lines := r.Header.Values(name); len(lines) > 1 {
			r.Header.Set(name, strings.Join(lines, ", "))
		}
	}
	if op.versioned && strings.TrimSpace(r.Header.Get(headerIfMatch)) == "" {
		return r, errPreconditionRequired
	}
	for _, name := range []string{headerIfMatch, headerIfNoneMatch} {
		declared := op.parameters.GetByInAndName(openapi3.ParameterInHeader, name)
		if declared == nil {
			continue // the operation does not take this header: ignore it
		}
		value := r.Header.Get(name)
		if most := declared.Schema.Value.MaxLength; most != nil && uint64(len(value)) > *most {
			return r, errInvalidPrecondition
		}
		if _, err := parseTags(value); err != nil {
			return r, err
		}
	}
	return r, nil
}

// checkKey requires one header line of 1 to 255 visible ASCII characters.
func checkKey(lines []string) error {
	if len(lines) == 0 {
		return errKeyRequired
	}
	key := lines[0]
	if len(lines) > 1 || len(key) < 1 || len(key) > maxKey {
		return errKeyInvalid
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return errKeyInvalid
		}
	}
	return nil
}
