package httpapi

import (
	"net/http"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// The codes that only the boundary knows.
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

// problemType is what every occurrence of a code has in common.
type problemType struct {
	code       domain.Code
	status     int
	title      string
	retryAfter int // seconds; 0: no Retry-After
}

// problemTypes is the one table of problem codes. docs/problems.md and api/openapi.yaml list the same, and a test compares.
func problemTypes() []problemType {
	return []problemType{
		{domain.CodeValidationFailed, http.StatusBadRequest, "Validation failed", 0},
		{codeMalformed, http.StatusBadRequest, "Malformed request", 0},
		{app.CodeInvalidCursor, http.StatusBadRequest, "Invalid cursor", 0},
		{codeKeyRequired, http.StatusBadRequest, "Idempotency key required", 0},
		{codeKeyInvalid, http.StatusBadRequest, "Invalid idempotency key", 0},
		{codeInvalidPrecondition, http.StatusBadRequest, "Invalid precondition", 0},
		{codeInvalidSignature, http.StatusBadRequest, "Invalid signature", 0},
		{codeUnauthenticated, http.StatusUnauthorized, "Not authenticated", 0},
		{app.CodeForbidden, http.StatusForbidden, "Forbidden", 0},
		{app.CodeOrderNotFound, http.StatusNotFound, "Order not found", 0},
		{app.CodeProductNotFound, http.StatusNotFound, "Product not found", 0},
		{codeRouteNotFound, http.StatusNotFound, "Route not found", 0},
		{codeMethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", 0},
		{codeRequestTimeout, http.StatusRequestTimeout, "Request timeout", 0},
		{app.CodeVersionConflict, http.StatusConflict, "Version conflict", 0},
		{app.CodeKeyInProgress, http.StatusConflict, "Idempotency key in progress", 1},
		{domain.CodeInsufficientStock, http.StatusConflict, "Insufficient stock", 0},
		{domain.CodeProductUnavailable, http.StatusConflict, "Product unavailable", 0},
		{domain.CodeCurrencyMismatch, http.StatusConflict, "Currency mismatch", 0},
		{domain.CodeOrderNotCancellable, http.StatusConflict, "Order not cancellable", 0},
		{domain.CodeOrderNotShippable, http.StatusConflict, "Order not shippable", 0},
		{domain.CodePaymentNotSettled, http.StatusConflict, "Payment not settled", 0},
		{domain.CodeAddressNotChangeable, http.StatusConflict, "Address not changeable", 0},
		{domain.CodeRefundExceedsCharge, http.StatusConflict, "Refund exceeds charge", 0},
		{domain.CodeOrderNotRefundable, http.StatusConflict, "Order not refundable", 0},
		{app.CodeProductExists, http.StatusConflict, "Product exists", 0},
		{codePreconditionFailed, http.StatusPreconditionFailed, "Precondition failed", 0},
		{codeBodyTooLarge, http.StatusRequestEntityTooLarge, "Body too large", 0},
		{codeUnsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", 0},
		{app.CodeKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused", 0},
		{codePreconditionRequired, http.StatusPreconditionRequired, "Precondition required", 0},
		{codeInternal, http.StatusInternalServerError, "Internal error", 0},
		{app.CodeTryAgain, http.StatusServiceUnavailable, "Try again", 1},
		{app.CodeOutcomeUnknown, http.StatusServiceUnavailable, "Outcome unknown", 1},
	}
}
