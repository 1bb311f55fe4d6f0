package migrations

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/deploy"
	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/infra/config"
)

// separate is a database of its own server with the roles of deploy/roles.sql, not migrated.
func separate(t testing.TB) (s *postgres.Server, owner, service *pgxpool.Pool) {
	t.Helper()
	s = pgtest.Server(t)
	ownerURL, serviceURL, err := s.Separate(t.Context(), "orders")
	require.NoError(t, err)
	return s, open(t, ownerURL), open(t, serviceURL)
}

// Ensure every table has its line in privileges.sql, River's included: a new one that the service should use, or not,
// needs a decision. The service reads them all and owns none.
func TestEveryTableHasItsPrivileges(t *testing.T) {
	t.Parallel()
	_, owner, service := separate(t)
	require.NoError(t, Up(t.Context(), owner))
	const tables = `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`
	all := texts(t, owner, tables)
	require.NotEmpty(t, all)
	require.Equal(t, all, texts(t, service, tables+` AND has_table_privilege(oid, 'SELECT')`))
	require.Equal(t, []string{
		"idempotency_keys", "provider_events", "river_job", "river_leader", "river_notification", "river_queue", "unmatched_charges",
	},
		texts(t, service, tables+` AND has_table_privilege(oid, 'DELETE')`))
	require.Empty(t, texts(t, service, tables+`
		AND (relowner <> 'orders_owner'::regrole OR has_table_privilege(oid, 'TRUNCATE, REFERENCES, TRIGGER'))`))
	pending, err := Pending(t.Context(), service)
	require.NoError(t, err)
	require.False(t, pending)
}

// Ensure a database that was migrated before it had roles can be given them, and that the script and Up may run again.
func TestRolesCanComeLater(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t)
	admin := open(t, s.URL("postgres"))
	_, err := admin.Exec(t.Context(), `CREATE ROLE orders_owner LOGIN PASSWORD 'x'`)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE DATABASE later OWNER orders_owner`)
	require.NoError(t, err)
	before := open(t, s.URL("later"))
	require.NoError(t, asOwner(t, s, func(pool *pgxpool.Pool) error { return Up(t.Context(), pool) }))
	for range 2 {
		_, err = before.Exec(t.Context(), deploy.Roles)
		require.NoError(t, err)
		require.NoError(t, asOwner(t, s, func(pool *pgxpool.Pool) error { return Up(t.Context(), pool) }))
	}
	require.Equal(t, []string{"true"}, texts(t, before, `SELECT has_table_privilege('orders_service', 'orders', 'UPDATE')::text`))
}

func asOwner(t testing.TB, s *postgres.Server, fn func(*pgxpool.Pool) error) error {
	t.Helper()
	u, err := url.Parse(s.URL("later"))
	require.NoError(t, err)
	u.User = url.UserPassword("orders_owner", "x")
	return fn(open(t, u.String()))
}

// Ensure the limits that roles.sql gives the service are the defaults of its settings.
func TestRolesHaveTheDefaultLimits(t *testing.T) {
	t.Parallel()
	_, _, service := separate(t)
	required := map[string]string{"DATABASE_URL": "postgres://x", "STRIPE_API_KEY": "x"}
	c, err := config.LoadWorker(func(name string) (string, bool) { v, ok := required[name]; return v, ok })
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), service.Config().ConnString()) // with no limit of the test's own
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for name, want := range map[string]int64{
		"lock_timeout": c.Database.LockTimeout.Milliseconds(), "statement_timeout": c.Database.StatementTimeout.Milliseconds(),
		"idle_in_transaction_session_timeout": c.Database.IdleTxTimeout.Milliseconds(),
	} {
		var got int64
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT setting::bigint FROM pg_settings WHERE name = $1`, name).Scan(&got))
		require.Equal(t, want, got, name)
	}
}
