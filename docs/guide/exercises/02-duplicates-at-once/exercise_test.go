//go:build exercise

package exercise

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const duplicates = 5

type outcome struct {
	id  int64
	err error
}

// atOnce sends duplicates that are all at work before the first one can place its order.
func atOnce(t *testing.T, db *pgxpool.Pool) (outcomes []outcome) {
	t.Helper()
	held, err := db.Begin(t.Context())
	require.NoError(t, err)
	defer held.Rollback(context.Background())
	_, err = held.Exec(t.Context(), `LOCK TABLE orders IN EXCLUSIVE MODE`) // reads pass, writes wait
	require.NoError(t, err)
	answers := make(chan outcome, duplicates)
	for range duplicates {
		go func() {
			id, err := Place(t.Context(), db, "k1", "TEA-001")
			answers <- outcome{id, err}
		}()
	}
	require.Eventually(t, func() bool {
		var n int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		return err == nil && n == duplicates
	}, time.Minute, 10*time.Millisecond, "every duplicate waits in PostgreSQL")
	require.NoError(t, held.Rollback(t.Context()))
	for range duplicates {
		outcomes = append(outcomes, <-answers)
	}
	return outcomes
}

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, pgtest.Database(t, pgtest.Migrator(Schema, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, Schema)
		return err
	}))+"&pool_max_conns=10")
}

func orders(t *testing.T, db *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&n))
	return n
}

// Ensure all duplicates that meet get the one order: none gets an error.
func TestDuplicatesAtOnceGetOneOrder(t *testing.T) {
	t.Parallel()
	db := open(t)
	ids := map[int64]bool{}
	for _, o := range atOnce(t, db) {
		require.NoError(t, o.err)
		ids[o.id] = true
	}
	require.Len(t, ids, 1)
	require.Equal(t, 1, orders(t, db))
}

// Ensure that where the winner fails when it commits, exactly one of the others goes on in its place.
func TestAFailedWinnerHandsOver(t *testing.T) {
	t.Parallel()
	db := open(t)
	_, err := db.Exec(t.Context(), `
		CREATE SEQUENCE commits;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF nextval(''commits'') = 1 THEN RAISE EXCEPTION ''the first commit fails''; END IF; RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	require.NoError(t, err)
	failed, ids := 0, map[int64]bool{}
	for _, o := range atOnce(t, db) {
		if o.err != nil {
			require.ErrorContains(t, o.err, "the first commit fails")
			failed++
			continue
		}
		ids[o.id] = true
	}
	require.Equal(t, 1, failed)
	require.Len(t, ids, 1)
	require.Equal(t, 1, orders(t, db))
}
