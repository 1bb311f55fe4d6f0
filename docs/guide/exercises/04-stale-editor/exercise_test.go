//go:build exercise

package exercise

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := pgtest.Pool(t, pgtest.Database(t, pgtest.Migrator(Schema, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, Schema)
		return err
	}))+"&pool_max_conns=10")
	_, err := db.Exec(t.Context(), `INSERT INTO orders VALUES (1, 'High Street', 'open', 1)`)
	require.NoError(t, err)
	return db
}

// Ensure a caller whose version is stale is told, and changes nothing.
func TestAStaleVersionIsRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	require.NoError(t, ChangeAddress(t.Context(), db, 1, 1, "Low Street"))
	require.ErrorIs(t, Ship(t.Context(), db, 1, 1), ErrVersionConflict)
	require.NoError(t, Ship(t.Context(), db, 1, 2))
}

// Ensure of a shipment and an address change that saw one version exactly one is accepted, although both are at work before
// either has ended: else a parcel leaves for the old address while the order shows the new one.
func TestAnAddressChangeAgainstAShipment(t *testing.T) {
	t.Parallel()
	db := open(t)
	held, err := db.Begin(t.Context())
	require.NoError(t, err)
	defer held.Rollback(context.Background())
	_, err = held.Exec(t.Context(), `SELECT FROM orders WHERE id = 1 FOR UPDATE`)
	require.NoError(t, err)
	answers := make(chan error, 2)
	go func() { answers <- ChangeAddress(t.Context(), db, 1, 1, "Low Street") }()
	go func() { answers <- Ship(t.Context(), db, 1, 1) }()
	require.Eventually(t, func() bool {
		var n int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		return err == nil && n == 2
	}, time.Minute, 10*time.Millisecond, "both wait for the row")
	require.NoError(t, held.Rollback(t.Context()))
	accepted, refused := 0, 0
	for range 2 {
		switch err := <-answers; {
		case err == nil:
			accepted++
		case errors.Is(err, ErrVersionConflict):
			refused++
		default:
			require.NoError(t, err)
		}
	}
	require.Equal(t, []int{1, 1}, []int{accepted, refused}, "accepted and refused")
}
