package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Session is the connection of one transaction. It saves round trips: a write is collected and sent with the next read,
// or, where none follows, with COMMIT; BEGIN goes with the first statement. PostgreSQL runs a flight in order and stops at
// its first error, so that nothing commits behind a statement that failed. The error of a write comes with the flight that
// carried it.
type Session struct {
	conn  *pgxpool.Conn
	next  *pgx.Batch
	names []statement // of next
	begin func()      // collects BEGIN; nil once it has
	undo  []func()    // what to do to aggregates when the transaction does not commit
	now   time.Time   // zero until the flight of BEGIN
	again bool        // the transaction has run before, so that what was seen then may be old
	early error       // of a flight whose caller takes no error: every later flight fails with it
}

// advance gives a saved aggregate its next version. It has it before the commit, since the answer shows it; when the
// transaction does not commit, the aggregate gets the old one back.
func (s *Session) advance(aggregate interface{ Stored(version int64) }, version int64) {
	aggregate.Stored(version + 1)
	s.undo = append(s.undo, func() { aggregate.Stored(version) })
}

// statement is the name of a collected statement, with the errors that replace PostgreSQL's.
type statement struct {
	name string
	// missed is the error if the statement did not change exactly one row; nil: any number is allowed.
	missed error
	// taken is the error if another transaction held the row lock for too long; nil: PostgreSQL's error.
	taken error
}

func newSession(conn *pgxpool.Conn) *Session { return &Session{conn: conn, next: &pgx.Batch{}} }

// Write collects a statement that changes rows.
func (s *Session) Write(name, sql string, args ...any) { s.write(statement{name: name}, sql, args...) }

// WriteOne collects a statement that must change exactly one row, or the transaction fails with missed.
func (s *Session) WriteOne(name string, missed error, sql string, args ...any) {
	s.writeOne(statement{name: name, missed: missed}, sql, args...)
}

// writeOne collects a statement that must change exactly one row. PostgreSQL itself checks it, since COMMIT may be in the
// same flight: it divides by the number of rows, and a division by zero ends the transaction.
func (s *Session) writeOne(st statement, sql string, args ...any) {
	s.write(st, "WITH changed AS ("+sql+" RETURNING 1) SELECT 1 / count(*) FROM changed", args...)
}

// must collects a condition that has to hold, or the flight ends there and fails with the statement's missed.
func (s *Session) must(st statement, condition string, args ...any) {
	s.write(st, "SELECT 1 / ("+condition+")::int", args...)
}

func (s *Session) write(st statement, sql string, args ...any) {
	s.started()
	s.names = append(s.names, st)
	s.next.Queue(sql, args...)
}

// queueCommit collects the end of the transaction. PostgreSQL answers ROLLBACK, and no error, where an earlier flight had
// failed and its error was not heeded.
func (s *Session) queueCommit() {
	s.names = append(s.names, statement{name: "commit"})
	s.next.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
}

// started collects BEGIN, unless it has been.
func (s *Session) started() {
	if begin := s.begin; begin != nil {
		s.begin = nil
		begin()
	}
}

// read collects a query, whose rows collect gets once flush is called. Several can share a flight.
func (s *Session) read(name, sql string, collect func(pgx.Rows) error, args ...any) {
	s.started()
	s.look(name, sql, collect, args...)
}

// look collects a query that takes no locks. It needs no BEGIN, since each statement reads the latest committed rows.
func (s *Session) look(name, sql string, collect func(pgx.Rows) error, args ...any) {
	s.names = append(s.names, statement{name: name})
	s.next.Queue(sql, args...).Query(collect)
}

// flush sends what was collected, in one flight, and waits for all of its answers.
func (s *Session) flush(ctx context.Context) error {
	if s.early != nil || s.next.Len() == 0 {
		return s.early
	}
	batch, names := s.next, s.names
	s.next, s.names = &pgx.Batch{}, nil
	answered := 0
	for _, q := range batch.QueuedQueries {
		counted(q, &answered)
	}
	err := s.conn.SendBatch(ctx, batch).Close()
	if err == nil {
		return nil
	}
	return names[min(answered, len(names)-1)].failed(err)
}

// counted makes a statement count its answer, so that an error tells by its place which statement it is of.
func counted(q *pgx.QueuedQuery, answered *int) {
	if q.Fn == nil {
		q.Exec(func(pgconn.CommandTag) error { *answered++; return nil })
		return
	}
	collect := q.Fn
	q.Fn = func(br pgx.BatchResults) error {
		err := collect(br)
		if err == nil {
			*answered++
		}
		return err
	}
}

func (st statement) failed(err error) error {
	switch state := sqlState(err); {
	case state == divisionByZero && st.missed != nil:
		return refusedError{fmt.Errorf("%s: %w", st.name, st.missed)}
	case state == lockNotAvailable && st.taken != nil && waitedForARow(err):
		return refusedError{fmt.Errorf("%s: %w", st.name, st.taken)}
	default:
		return fmt.Errorf("%s: %w", st.name, err)
	}
}

// refusedError is an error that replaces PostgreSQL's: PostgreSQL has answered, so nothing of the transaction is committed.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// all collects every row of a query with scan into list.
func all[T any](list *[]T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, scan)
		return err
	}
}

// each calls found with every row of a query, as scan reads it.
func each[T any](scan pgx.RowToFunc[T], found func(T)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, scan)
		for _, value := range list {
			found(value)
		}
		return err
	}
}

// one collects the one row of a query with scan; pgx.ErrNoRows: there is none.
func one[T any](value *T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*value, err = pgx.CollectExactlyOneRow(rows, scan)
		return err
	}
}

// into collects the one row of a query into its columns' targets.
func into(targets ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(targets...)
		})
		return err
	}
}

// Immediate is the session for a caller that needs each answer before it goes on, as River does.
func (s *Session) Immediate() pgx.Tx { return immediate{s} }

type immediate struct{ s *Session }

var errNotHere = errors.New("a session is begun and ended by its store")

func (t immediate) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	t.s.started()
	if err := t.s.flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.s.conn.Exec(ctx, sql, args...)
}

func (t immediate) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	t.s.started()
	if err := t.s.flush(ctx); err != nil {
		return nil, err
	}
	return t.s.conn.Query(ctx, sql, args...)
}

func (t immediate) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	t.s.started()
	if err := t.s.flush(ctx); err != nil {
		return failedRow{err}
	}
	return t.s.conn.QueryRow(ctx, sql, args...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

func (t immediate) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.s.conn.SendBatch(ctx, b)
}
func (t immediate) Conn() *pgx.Conn                     { return t.s.conn.Conn() }
func (immediate) Begin(context.Context) (pgx.Tx, error) { return nil, errNotHere }
func (immediate) Commit(context.Context) error          { return errNotHere }
func (immediate) Rollback(context.Context) error        { return errNotHere }
func (immediate) LargeObjects() pgx.LargeObjects        { return pgx.LargeObjects{} }

func (immediate) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errNotHere
}

func (immediate) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errNotHere
}
