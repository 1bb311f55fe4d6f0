package app

import (
	"errors"

	"example.com/orders/internal/domain"
)

// The refusals of the application layer; domain/errors.go has those of the aggregates.
const (
	CodeForbidden       domain.Code = "forbidden"
	CodeOrderNotFound   domain.Code = "order_not_found"
	CodeProductNotFound domain.Code = "product_not_found"
	CodeProductExists   domain.Code = "product_exists"
	CodeInvalidCursor   domain.Code = "invalid_cursor"
	CodeVersionConflict domain.Code = "version_conflict"
	CodeKeyReused       domain.Code = "idempotency_key_reused"
	CodeKeyInProgress   domain.Code = "idempotency_key_in_progress"
	CodeTryAgain        domain.Code = "try_again"
	CodeOutcomeUnknown  domain.Code = "outcome_unknown"
)

// The refusals that need no detail.
var (
	ErrForbidden = domain.Refuse(CodeForbidden, "The access token does not carry the scope of this operation.")
	// ErrOrderNotFound is the same for a missing order, another customer's order and another tenant's order.
	ErrOrderNotFound   = domain.Refuse(CodeOrderNotFound, "There is no such order.")
	ErrProductNotFound = domain.Refuse(CodeProductNotFound, "There is no such product.")
	ErrInvalidCursor   = domain.Refuse(CodeInvalidCursor, "The cursor is not one that this list gave out.")
	ErrVersionConflict = domain.Refuse(CodeVersionConflict,
		"The resource has changed since the version in If-Match. Read it again and decide anew.")
	ErrKeyReused = domain.Refuse(CodeKeyReused,
		"This Idempotency-Key was used for another request. Use a new key for a new request.")
	// ErrKeyInProgress means that another request with the same key was still running when the wait ended.
	ErrKeyInProgress = domain.Refuse(CodeKeyInProgress,
		"A request with this Idempotency-Key is still at work. Try again with the same key.")
	// ErrTryAgain means that nothing was applied and that the same request may succeed later.
	ErrTryAgain = domain.Refuse(CodeTryAgain, "The service could not finish the request. Nothing was applied; try again.")
	// ErrOutcomeUnknown means that the connection was lost during COMMIT.
	ErrOutcomeUnknown = domain.Refuse(CodeOutcomeUnknown,
		"The connection to the store was lost while the request was being committed, so it may or may not have been"+
			" applied. Retry with the same Idempotency-Key or version to learn which.")
)

// ErrStale is returned by a save when the stored version differs from the loaded one (optimistic concurrency). The
// transaction then runs again: it reloads the aggregate, and compares the caller's version again.
var ErrStale = errors.New("stored version differs from the loaded one")

// ErrNotFound is returned by a repository when the aggregate does not exist.
var ErrNotFound = errors.New("not found")

// ErrExists is returned by a repository when an aggregate with that identity already exists.
var ErrExists = errors.New("exists already")
