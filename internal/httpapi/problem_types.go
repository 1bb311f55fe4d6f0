package httpapi

import "example.com/orders/internal/domain"

// The codes that only this package uses.
const (
	codeMalformed            domain.Code = "malformed_request"
	codeUnauthenticated      domain.Code = "unauthenticated"
	codeRouteNotFound        domain.Code = "route_not_found"
	codeMethodNotAllowed     domain.Code = "method_not_allowed"
	codeBodyTooLarge         domain.Code = "body_too_large"
	codeUnsupportedMediaType domain.Code = "unsupported_media_type"
	codeKeyRequired          domain.Code = "idempotency_key_required"
	codeKeyInvalid           domain.Code = "invalid_idempotency_key"
	codePreconditionRequired domain.Code = "precondition_required"
	codeInvalidPrecondition  domain.Code = "invalid_precondition"
	codeInvalidSignature     domain.Code = "invalid_signature"
	codePreconditionFailed   domain.Code = "precondition_failed"
	codeRequestTimeout       domain.Code = "request_timeout"
	codeInternal             domain.Code = "internal_error"
)

var (
	errUnauthenticated      = domain.Refuse(codeUnauthenticated, "The request carries no valid access token.")
	errRouteNotFound        = domain.Refuse(codeRouteNotFound, "There is no such path.")
	errMethodNotAllowed     = domain.Refuse(codeMethodNotAllowed, "The path does not have this method; see Allow.")
	errBodyTooLarge         = domain.Refuse(codeBodyTooLarge, "The body is larger than 64 KiB.")
	errUnsupportedMediaType = domain.Refuse(codeUnsupportedMediaType, "The body must be application/json, said in one Content-Type line.")
	errEncodedBody          = domain.Refuse(codeUnsupportedMediaType, "The body must not be compressed: send it without Content-Encoding.")
	errRequestTimeout       = domain.Refuse(codeRequestTimeout, "The body did not arrive in time. Nothing was applied; try again.")
	errPreconditionFailed   = domain.Refuse(codePreconditionFailed, "If-Match does not name what is there now.")
	errKeyRequired          = domain.Refuse(codeKeyRequired, "This operation needs an Idempotency-Key header.")
	errKeyInvalid           = domain.Refuse(codeKeyInvalid,
		"Idempotency-Key must be one header line of 1 to 255 visible ASCII characters.")
	errPreconditionRequired = domain.Refuse(codePreconditionRequired,
		"This operation needs an If-Match header with the ETag that you read.")
	errInvalidPrecondition = domain.Refuse(codeInvalidPrecondition, "The precondition is not a list of entity tags.")
	errInvalidSignature    = domain.Refuse(codeInvalidSignature,
		"The event is not signed by the provider, or was signed too long ago.")
	errInternal = domain.Refuse(codeInternal, "Something went wrong on our side.")
)

func malformed(detail string) error { return domain.Refuse(codeMalformed, detail) }

// problemType is the status, title and Retry-After of a code. problemTypes is generated from the contract's x-problems.
type problemType struct {
	code       domain.Code
	status     int
	title      string
	retryAfter int // seconds; 0: no Retry-After
}
