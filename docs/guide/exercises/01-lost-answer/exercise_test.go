//go:build exercise

package exercise

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, pgtest.Database(t, pgtest.Migrator(Schema, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, Schema)
		return err
	})))
}

func orders(t *testing.T, db *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&n))
	return n
}

// Ensure a caller whose answer was lost gets the same order when it retries, and that another key is another order.
func TestARetryGetsItsOrder(t *testing.T) {
	t.Parallel()
	db := open(t)
	first, err := Place(t.Context(), db, "k1", "TEA-001")
	require.NoError(t, err)
	again, err := Place(t.Context(), db, "k1", "TEA-001")
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := Place(t.Context(), db, "k2", "TEA-001")
	require.NoError(t, err)
	require.NotEqual(t, first, other)
	require.Equal(t, 2, orders(t, db))
}

// Ensure an attempt that fails when it commits leaves nothing, so that the retry places the order: order and key are stored together.
func TestAFailedAttemptLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	db := open(t)
	_, err := db.Exec(t.Context(), `
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''the commit fails''; END';
		CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	require.NoError(t, err)
	_, err = Place(t.Context(), db, "k1", "TEA-001")
	require.ErrorContains(t, err, "the commit fails")
	_, err = db.Exec(t.Context(), `DROP TRIGGER fail ON orders`)
	require.NoError(t, err)
	_, err = Place(t.Context(), db, "k1", "TEA-001")
	require.NoError(t, err)
	require.Equal(t, 1, orders(t, db))
}
