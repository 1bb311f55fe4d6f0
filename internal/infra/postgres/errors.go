package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/orders/internal/app"
)

// The error conditions that this package distinguishes, by SQLSTATE (PostgreSQL, appendix A) and never by a
// constraint's name.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	tooManyConnections   = "53300"
	readOnlyTransaction  = "25006" // the server has become a standby
	divisionByZero       = "22012" // see Session.writeOne
	planChanged          = "0A000" // of a prepared statement: "cached plan must not change result type"
)

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// waitedForARow reports whether a lock timeout was on a row or an index entry and not on a table: only for those does
// PostgreSQL report the location of the wait.
func waitedForARow(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Where != ""
}

// stale is the retry reason of a version conflict, which has no SQLSTATE.
const stale = "stale"

// retryReason returns why a transaction must run again: PostgreSQL rolled it back because of another transaction or a
// migration, or a save found a newer version. Empty: no retry. The next run loads the aggregates again, so the caller's
// version is compared with the current one.
func retryReason(err error) string {
	switch state := sqlState(err); {
	case state == serializationFailure, state == deadlockDetected, state == planChanged:
		return state
	case errors.Is(err, app.ErrStale):
		return stale
	default:
		return ""
	}
}

// Blocked reports whether a statement failed because of locks of other transactions, so that a retry may succeed.
func Blocked(err error) bool {
	state := sqlState(err)
	return state == lockNotAvailable || state == deadlockDetected
}

// Full reports whether the server had no free connection.
func Full(err error) bool { return sqlState(err) == tooManyConnections }

// Passing reports whether the error is transient: the server is unreachable, has no free connection, or is read-only.
func Passing(err error) bool {
	state := sqlState(err)
	return state == readOnlyTransaction || passing(state) || state == "" && connectionLost(err)
}

// classify maps an error of a transaction to the application's error, once and only here. ErrTryAgain means that
// nothing was applied.
func classify(err error) error {
	switch state := sqlState(err); {
	case err == nil, errors.Is(err, app.ErrOutcomeUnknown), errors.Is(err, app.ErrTryAgain):
		return err
	case state == lockNotAvailable, state == queryCanceled, state == readOnlyTransaction, passing(state):
		return fmt.Errorf("%w: %w", app.ErrTryAgain, err)
	case state == "" && connectionLost(err):
		return fmt.Errorf("%w: %w", app.ErrTryAgain, err)
	default:
		return err
	}
}

// passing reports whether the SQLSTATE's class is about the server and not the statement: connection exceptions,
// insufficient resources, operator intervention.
func passing(state string) bool {
	if len(state) != 5 {
		return false
	}
	return state[:2] == "08" || state[:2] == "53" || state[:3] == "57P"
}

func connectionLost(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) ||
		pgconn.SafeToRetry(err)
}

// unavailable returns ErrTryAgain if no connection was acquired in time, unless the caller's context was cancelled.
func unavailable(caller context.Context, err error) error {
	if err == nil || caller.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", app.ErrTryAgain, err)
}

// notFound maps pgx.ErrNoRows to app.ErrNotFound.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %w", app.ErrNotFound, err)
	}
	return err
}
