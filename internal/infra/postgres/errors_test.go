package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// Ensure everything that says that the database is gone, slow or busy becomes "try again", and nothing else does: an error
// of ours that was told to try again would be retried for ever and never be reported.
func TestClassify(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &pgconn.PgError{Code: code} }
	for name, err := range map[string]error{
		"end of file":          io.EOF,
		"cut off":              io.ErrUnexpectedEOF,
		"reset":                &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"closed socket":        net.ErrClosed,
		"closed by the driver": pgconn.ErrConnClosed,
		"cannot connect":       &pgconn.ConnectError{},
		"deadline":             context.DeadlineExceeded,
		"lock timeout":         state("55P03"),
		"statement timeout":    state("57014"),
		"standby":              state("25006"),
		"connection failure":   state("08006"),
		"too many connections": state("53300"),
		"admin shutdown":       state("57P01"),
		"crash shutdown":       state("57P02"),
		"cannot connect now":   state("57P03"),
		"already said":         app.ErrTryAgain,
	} {
		require.ErrorIs(t, classify(fmt.Errorf("begin: %w", err)), app.ErrTryAgain, name)
	}
	for name, err := range map[string]error{
		"unique violation": state("23505"),
		"syntax error":     state("42601"),
		"no privilege":     state("42501"),
		"no such database": state("3D000"),
		"not found":        app.ErrNotFound,
		"outcome unknown":  app.ErrOutcomeUnknown,
		"caller gone":      context.Canceled,
		"anything else":    io.ErrShortBuffer,
	} {
		require.NotErrorIs(t, classify(fmt.Errorf("begin: %w", err)), app.ErrTryAgain, name)
	}
	require.NoError(t, classify(nil))
}
