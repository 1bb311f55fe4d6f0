package migrations

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// empty is a database without any table.
func empty(t testing.TB) *pgxpool.Pool {
	t.Helper()
	nothing := pgtest.Migrator("empty", func(context.Context, *sql.DB) error { return nil })
	return open(t, pgtest.Database(t, nothing))
}

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, url)
}

func texts(t testing.TB, pool *pgxpool.Pool, query string, args ...any) (list []string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(x ORDER BY x), '{}') FROM (`+query+`) q(x)`, args...).Scan(&list)
	require.NoError(t, err)
	return list
}

// relations is every table, view, sequence and type of the schema.
const relations = `
	SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S', 'm', 'p')
	UNION SELECT typname::text FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype = 'e'
	UNION SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace`
