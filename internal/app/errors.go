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
	// ErrOrderNotFound answers alike for no order, another customer's order and another tenant's order.
	ErrOrderNotFound   = domain.Refuse(CodeOrderNotFound, "There is no such order.")
	ErrProductNotFound = domain.Refuse(CodeProductNotFound, "There is no such product.")
	ErrInvalidCursor   = domain.Refuse(CodeInvalidCursor, "The cursor is not one that this list gave out.")
	ErrVersionConflict = domain.Refuse(CodeVersionConflict,
		"The resource has changed since the version in If-Match. Read it again and decide anew.")
	ErrKeyReused = domain.Refuse(CodeKeyReused,
		"This Idempotency-Key was used for another request. Use a new key for a new request.")
	// ErrKeyInProgress ends a wait for a request that has the same key and is still at work.
	ErrKeyInProgress = domain.Refuse(CodeKeyInProgress,
		"A request with this Idempotency-Key is still at work. Try again with the same key.")
	// ErrTryAgain says that nothing was applied and that the same request may succeed a little later.
	ErrTryAgain = domain.Refuse(CodeTryAgain, "The service could not finish the request. Nothing was applied; try again.")
	// ErrOutcomeUnknown says that the connection was lost while the transaction was committing.
	ErrOutcomeUnknown = domain.Refuse(CodeOutcomeUnknown,
		"The connection to the store was lost while the request was being committed, so it may or may not have been"+
			" applied. Retry with the same Idempotency-Key or version to learn which.")
)

// ErrStale is what a save returns when the stored version is not the one that was loaded. The transaction then runs
// again: internal writers reload, and a caller's version is compared anew.
var ErrStale = errors.New("stored version differs from the loaded one")

// ErrNotFound is what a repository returns when there is no such aggregate.
var ErrNotFound = errors.New("not found")

// ErrExists is what a repository returns when an aggregate with that identity exists already.
var ErrExists = errors.New("exists already")
