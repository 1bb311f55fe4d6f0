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

// The conditions that are told apart, by SQLSTATE and never by a constraint's name (PostgreSQL, appendix A).
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

// waitedForARow reports whether the lock that was not free in time was that of a row or of an index entry, not that of
// a table: of those alone PostgreSQL says, in any language, where it waited.
func waitedForARow(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Where != ""
}

// stale is the reason of another try where there is no SQLSTATE.
const stale = "stale"

// retryReason tells why a transaction is to run again: PostgreSQL undid it for the sake of another one or of a
// migration, or a save met another version than it had loaded. Empty: it is not. The next run loads anew, so a caller's
// version is compared with what is stored by then.
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

// Blocked reports whether a statement gave up because of what others hold, and may work a moment later.
func Blocked(err error) bool {
	state := sqlState(err)
	return state == lockNotAvailable || state == deadlockDetected
}

// Full reports whether there was no connection left to be had.
func Full(err error) bool { return sqlState(err) == tooManyConnections }

// Passing reports whether the server's condition made it refuse: gone, full, read-only. It may be another one a moment
// later.
func Passing(err error) bool {
	state := sqlState(err)
	return state == readOnlyTransaction || passing(state) || state == "" && connectionLost(err)
}

// classify is where an error of a transaction becomes the application's: once, and only here. Nothing was applied
// when it says try again.
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

// passing reports whether the SQLSTATE's class speaks of the server's condition rather than of the statement:
// connection exceptions, insufficient resources, operator intervention.
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

// unavailable says try again for a connection that could not be had in time, unless the caller itself has gone.
func unavailable(caller context.Context, err error) error {
	if err == nil || caller.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", app.ErrTryAgain, err)
}

// notFound says so where a query that must find a row has found none.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %w", app.ErrNotFound, err)
	}
	return err
}
