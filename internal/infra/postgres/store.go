// Package postgres implements the application's ports on PostgreSQL: transactions, repositories, queries and the
// idempotency store.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// Settings are the store's timeouts; docs/settings explains their values. See NewSettings.
type Settings struct {
	KeyWait        time.Duration // how long a duplicate waits for the request with the same key
	LockTimeout    time.Duration // how long a statement waits for a row lock
	AcquireTimeout time.Duration // how long a request waits for a connection

	atBegin []string // the statements that each transaction runs at its begin; see limitsAtBegin
}

// Observer counts the store's waits and retries. outcome is turn or timeout.
type Observer interface {
	KeyWait(ctx context.Context, outcome string, took time.Duration)
	TransactionRetry(ctx context.Context, reason string) // a SQLSTATE, or stale
}

// Store runs the application's transactions. Isolation is READ COMMITTED: a use case locks the rows that it changes
// before it reads them, and every save compares the version, so a transaction that waited for a lock sees the committed
// change.
type Store struct {
	pool     *pgxpool.Pool
	outbox   func(*Session) app.Outbox
	enqueued func()
	settings Settings
	observer Observer
	tracer   trace.Tracer
	gate     gate
	probes   chan struct{}
}

// NewStore makes a Store on the pool; outbox binds the job queue to a transaction.
func NewStore(
	pool *pgxpool.Pool, outbox func(*Session) app.Outbox, settings Settings, o Observer, traces trace.TracerProvider,
) *Store {
	return &Store{
		pool: pool, outbox: outbox, enqueued: func() {}, settings: settings, observer: o,
		tracer: traces.Tracer("orders/postgres"), gate: newGate(),
		probes: make(chan struct{}, max(1, pool.Config().MaxConns/2)),
	}
}

// AfterEnqueue sets what is called after every commit of a transaction that used the outbox. It must return at once.
// Call it before the store is used.
func (s *Store) AfterEnqueue(call func()) { s.enqueued = call }

// InTx implements app.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context, app.Tx) error) error {
	return s.inTx(ctx, func(*Tx) {}, fn)
}

func (s *Store) inTx(ctx context.Context, start func(*Tx), fn func(context.Context, app.Tx) error) error {
	for try := 1; ; try++ {
		err := s.once(ctx, func(t *Tx) { t.again = try > 1; start(t) }, fn)
		reason := retryReason(err)
		if reason == "" {
			return classify(err)
		}
		if try == maxTries {
			return fmt.Errorf("%w: gave up after %d tries: %w", app.ErrTryAgain, try, err)
		}
		s.observer.TransactionRetry(ctx, reason)
		if err := pause(ctx, Jitter(time.Duration(try*try)*5*time.Millisecond)); err != nil {
			return err
		}
	}
}

// once runs one transaction. start says what it begins with.
func (s *Store) once(ctx context.Context, start func(*Tx), fn func(context.Context, app.Tx) error) error {
	ctx, span := s.tracer.Start(ctx, "transaction")
	defer span.End()
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	tx := &Tx{Session: newSession(conn), store: s, ctx: ctx}
	defer tx.end(ctx)
	tx.begin = tx.queueBegin
	start(tx)
	err = fn(ctx, tx)
	if err == nil {
		err = tx.commit(ctx)
	}
	if err != nil {
		for _, undo := range slices.Backward(tx.undo) {
			undo()
		}
		s.forgetPlans(err)
		return err
	}
	if tx.enqueues {
		s.enqueued()
	}
	return nil
}

// acquire takes a connection, which it waits for as long as the setting allows.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, s.settings.AcquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(limited)
	if err != nil {
		return nil, fmt.Errorf("acquire connection: %w", unavailable(ctx, err))
	}
	return conn, nil
}

// forgetPlans replaces all connections when a migration has changed the result type of a prepared statement. Each
// connection has its own prepared statements, so otherwise a retry could fail once per connection.
func (s *Store) forgetPlans(err error) {
	if sqlState(err) == planChanged {
		s.pool.Reset()
	}
}

// queueBegin collects BEGIN and, where the time is not known, a look at the clock.
func (t *Tx) queueBegin() {
	t.Write("begin", "begin isolation level read committed")
	for _, limit := range t.store.settings.atBegin {
		t.Write("begin", limit)
	}
	if t.now.IsZero() {
		t.read("read the clock", "SELECT now()", into(&t.now))
	}
}

// end gives the connection back. It rolls back what was not committed; a broken connection rolls back by itself.
func (t *Tx) end(ctx context.Context) {
	defer t.conn.Release()
	if t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTimeout)
	defer cancel()
	_, _ = t.conn.Exec(ctx, "rollback")
}

// commit sends the writes that are left, and COMMIT behind them. It is not sent for a caller that has gone. Once sent it
// goes on even when the caller goes, since a COMMIT that is cut short leaves its outcome unknown. A definite refusal by the
// server comes back as it is; when the answer is lost, so is the outcome. What only looked, as
// a replay does, has begun no transaction.
func (t *Tx) commit(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), t.early); err != nil {
		return fmt.Errorf("before commit: %w", err)
	}
	if t.begin != nil {
		return nil
	}
	// The writes that go with it may still wait for a lock, which PostgreSQL itself ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.settings.LockTimeout+CommitTimeout)
	defer cancel()
	t.queueCommit()
	err := t.flush(ctx)
	var refused *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch // a statement could not be prepared, or an argument not be encoded
	switch {
	case err == nil, definite(err),
		errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR",
		errors.As(err, &unsent), pgconn.SafeToRetry(err): // COMMIT was not sent
		return err
	default:
		return fmt.Errorf("%w: %w", app.ErrOutcomeUnknown, err)
	}
}

// definite reports whether an error is a definite refusal by PostgreSQL.
func definite(err error) bool {
	_, refused := errors.AsType[refusedError](err)
	return refused || errors.Is(err, pgx.ErrTxCommitRollback)
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

// Jitter spreads waits over half to all of d, so that colliding transactions do not collide again.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // G404: jitter, no secret
}

// Tx is one transaction of a Store.
type Tx struct {
	*Session

	store    *Store
	ctx      context.Context //nolint:containedctx // for Now, which has none of its own
	enqueues bool
	key      *keyLookup // of a keyed transaction
}

// Now implements app.Tx. The clock comes with the flight of BEGIN. Asked for before, it takes a flight of its own, whose
// error comes with the next one.
func (t *Tx) Now() time.Time {
	if t.now.IsZero() {
		t.started()
		t.early = t.flush(t.ctx)
	}
	return t.now.UTC()
}

// SessionOf returns the session of a transaction that a Store has begun.
func SessionOf(tx app.Tx) *Session { return tx.(*Tx).Session } //nolint:forcetypeassert // there is no other

// Orders implements app.Tx.
func (t *Tx) Orders() app.Orders { return orders{t.Session} }

// Payments implements app.Tx.
func (t *Tx) Payments() app.Payments { return payments{t.Session} }

// Products implements app.Tx.
func (t *Tx) Products() app.Products { return products{t.Session} }

// Stock implements app.Tx.
func (t *Tx) Stock() app.StockRepository { return stock{t.Session} }

// Inbox implements app.Tx.
func (t *Tx) Inbox() app.Inbox { return inbox{t.Immediate()} }

// Unmatched implements app.Tx.
func (t *Tx) Unmatched() app.UnmatchedCharges { return unmatchedCharges{t.Immediate()} }

// Watermarks implements app.Tx.
func (t *Tx) Watermarks() app.Watermarks { return watermarks{t.Immediate()} }

// Outbox implements app.Tx.
func (t *Tx) Outbox() app.Outbox {
	t.enqueues = true
	return t.store.outbox(t.Session)
}
