package app

// The ports that a service of any domain needs: transactions, client keys, jobs.

import (
	"context"
	"time"
)

// Store runs work in transactions.
type Store interface {
	// InTx runs fn in one transaction and commits it when fn returns nil. On a serialization failure or a deadlock the
	// whole transaction runs again, a bounded number of times, so fn must not keep anything from an earlier run. It
	// returns ErrTryAgain when nothing was applied and ErrOutcomeUnknown when the result of COMMIT is unknown.
	InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error

	// InKeyedTx is InTx for a command with a client key. While another request is running under the key, it waits
	// without holding a connection. When the configured wait is over it returns ErrKeyInProgress.
	InKeyedTx(ctx context.Context, scope KeyScope, fn func(ctx context.Context, tx Tx) error) error
}

// Tx is one transaction and its repositories.
type Tx interface { //nolint:interfacebloat // one method for each repository
	// Now is the time at which the transaction began, by the database's clock, in UTC and microseconds. Everything that
	// is stored or compared uses this clock, never the clock of this machine. After Orders.AsSeen, Now is the time that
	// was read then, plus the time that has passed since by the monotonic clock.
	Now() time.Time

	Orders() Orders
	Payments() Payments
	Products() Products
	Stock() StockRepository
	Outbox() Outbox
	Inbox() Inbox
	Unmatched() UnmatchedCharges
	Watermarks() Watermarks

	// FindKey returns the completed record of the client key that InKeyedTx was called with, or nil if there is none.
	// If nil, no other request runs under the key from the transaction's next statement until its end.
	FindKey() (*KeyRecord, error)
	// CompleteKey stores the reply under that key, for the retention time. If two requests get here, only one commits.
	CompleteKey(digest Fingerprint, reply Reply, retention time.Duration)
}

// KeyScope is the identity of a client key.
type KeyScope struct {
	Tenant    string
	Actor     string
	Operation string
	Key       string
}

// KeyRecord is a completed key.
type KeyRecord struct {
	Fingerprint Fingerprint
	Reply       Reply
}

// Completion marks the running job as completed in the transaction that records its result.
type Completion func(ctx context.Context, tx Tx) error
