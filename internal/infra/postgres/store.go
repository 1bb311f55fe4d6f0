// Package postgres implements the application's ports on PostgreSQL: transactions, repositories, queries and the
// idempotency store.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/app"
)

const (
	// maxTries bounds how often a transaction runs when PostgreSQL asks for another try.
	maxTries = 5
	// CommitTimeout bounds a COMMIT, which goes on when its caller has gone.
	CommitTimeout = 10 * time.Second
)

// Settings are the store's bounds on waiting; docs/settings argues their values.
type Settings struct {
	KeyWait        time.Duration // how long a duplicate waits for the request that has its key
	LockTimeout    time.Duration // how long a statement waits for a row
	AcquireTimeout time.Duration // how long a request waits for a connection
	TxLimits       string        // see TxLimits
}

// Observer is told of what the store had to wait for or do again. outcome is turn or timeout.
type Observer interface {
	KeyWait(ctx context.Context, outcome string, took time.Duration)
	TransactionRetry(ctx context.Context, reason string) // a SQLSTATE, or stale
}

// Store runs the application's transactions. Isolation is READ COMMITTED: rows that are read to be changed are locked
// first, and every save compares the version, so a transaction that had to wait sees what it waited for.
type Store struct {
	pool     *pgxpool.Pool
	outbox   func(pgx.Tx) app.Outbox
	enqueued func()
	settings Settings
	observer Observer
	tracer   trace.Tracer
	gate     gate
	probes   chan struct{}
}

// NewStore makes a Store on the pool; outbox binds the job queue to a transaction.
func NewStore(
	pool *pgxpool.Pool, outbox func(pgx.Tx) app.Outbox, settings Settings, o Observer, traces trace.TracerProvider,
) *Store {
	return &Store{
		pool: pool, outbox: outbox, enqueued: func() {}, settings: settings, observer: o, tracer: traces.Tracer("orders/postgres"), gate: newGate(),
		probes: make(chan struct{}, max(1, pool.Config().MaxConns/2)),
	}
}

// AfterEnqueue sets what is called after every commit of a transaction that used the outbox. It must return at once.
// Call it before the store is used.
func (s *Store) AfterEnqueue(call func()) { s.enqueued = call }

// InTx implements app.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context, app.Tx) error) error {
	for try := 1; ; try++ {
		err := s.once(ctx, fn)
		reason := retryReason(err)
		if reason == "" {
			return classify(err)
		}
		if try == maxTries {
			return fmt.Errorf("%w: gave up after %d tries: %w", app.ErrTryAgain, try, err)
		}
		s.observer.TransactionRetry(ctx, reason)
		if err := pause(ctx, jitter(time.Duration(try*try)*5*time.Millisecond)); err != nil {
			return err
		}
	}
}

// once runs one transaction.
func (s *Store) once(ctx context.Context, fn func(context.Context, app.Tx) error) error {
	ctx, span := s.tracer.Start(ctx, "transaction")
	defer span.End()
	tx, release, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	work := &Tx{tx: tx, store: s}
	if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&work.now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	if err := fn(ctx, work); err != nil {
		s.forgetPlans(err)
		return err
	}
	if err := commit(ctx, tx); err != nil {
		return err
	}
	if work.enqueues {
		s.enqueued()
	}
	return nil
}

// forgetPlans replaces all connections when a migration has changed what a prepared statement returns: each has
// prepared it on its own, so another try could meet the same refusal as often as there are connections.
func (s *Store) forgetPlans(err error) {
	if sqlState(err) == planChanged {
		s.pool.Reset()
	}
}

// begin takes a connection and starts a transaction on it. release undoes both and does nothing after a COMMIT but
// give the connection back.
func (s *Store) begin(ctx context.Context) (tx pgx.Tx, release func(), err error) {
	acquire, cancel := context.WithTimeout(ctx, s.settings.AcquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(acquire)
	if err != nil {
		return nil, nil, fmt.Errorf("acquire connection: %w", unavailable(ctx, err))
	}
	tx, err = conn.BeginTx(ctx, s.settings.txOptions(pgx.TxOptions{IsoLevel: pgx.ReadCommitted}))
	if err != nil {
		conn.Release()
		return nil, nil, fmt.Errorf("begin: %w", err)
	}
	return tx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // after a commit there is nothing to roll back; a broken connection rolls back by itself
		conn.Release()
	}, nil
}

// commit commits even when the caller has gone, since a COMMIT that is cut short leaves nobody knowing. A definite
// refusal by the server comes back as it is; when the answer is lost, so is the outcome.
func commit(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTimeout)
	defer cancel()
	err := tx.Commit(ctx)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR",
		errors.Is(err, pgx.ErrTxCommitRollback),
		pgconn.SafeToRetry(err): // nothing was sent
		return fmt.Errorf("commit: %w", err)
	default:
		return fmt.Errorf("%w: commit: %w", app.ErrOutcomeUnknown, err)
	}
}

// pause waits for d, or less when ctx ends: try again, where a deadline ended it.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return classify(ctx.Err())
	}
}

// jitter spreads waits over half to all of d, so that those who met do not meet again.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Tx is one transaction of a Store.
type Tx struct {
	tx       pgx.Tx
	store    *Store
	now      time.Time
	enqueues bool
}

// Now implements app.Tx.
func (t *Tx) Now() time.Time { return t.now.UTC() }

// PgxTx is the transaction beneath one that a Store has begun, for completing a job in it.
func PgxTx(tx app.Tx) pgx.Tx { return tx.(*Tx).tx } //nolint:forcetypeassert // there is no other

// Orders implements app.Tx.
func (t *Tx) Orders() app.Orders { return orders{t.tx} }

// Payments implements app.Tx.
func (t *Tx) Payments() app.Payments { return payments{t.tx} }

// Products implements app.Tx.
func (t *Tx) Products() app.Products { return products{t.tx} }

// Stock implements app.Tx.
func (t *Tx) Stock() app.StockRepository { return stock{t.tx} }

// Inbox implements app.Tx.
func (t *Tx) Inbox() app.Inbox { return inbox{t.tx} }

// Unmatched implements app.Tx.
func (t *Tx) Unmatched() app.UnmatchedCharges { return unmatchedCharges{t.tx} }

// Watermarks implements app.Tx.
func (t *Tx) Watermarks() app.Watermarks { return watermarks{t.tx} }

// Outbox implements app.Tx.
func (t *Tx) Outbox() app.Outbox {
	t.enqueues = true
	return t.store.outbox(t.tx)
}
