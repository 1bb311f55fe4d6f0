package e2e

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/migrations"
)

// startSeparate starts the API as the role that owns nothing, on a server of the test's own: roles belong to a whole
// server. The worker is for the test to start.
func startSeparate(t *testing.T, env ...string) (s *testkit.Service, serviceURL string) {
	t.Helper()
	owner, service := separate(t, pgtest.Server(t))
	return testkit.StartOn(t, owner, append([]string{"DATABASE_URL", service}, env...)...), service
}

// separate makes a migrated database with the roles of production and returns their addresses.
func separate(t *testing.T, server *postgres.Server) (owner, service string) {
	t.Helper()
	owner, service, err := server.Separate(t.Context(), "orders")
	require.NoError(t, err)
	require.NoError(t, migrations.Up(t.Context(), pgtest.Pool(t, owner)))
	return owner, service
}

// Ensure the service's role can neither alter nor drop nor truncate nor create, nor change what is final, nor become
// the owner.
func TestPrivilegesTheServiceOwnsNothing(t *testing.T) {
	t.Parallel()
	s, service := startSeparate(t)
	s.Product(t, "TEA-001", 1999, 10)
	s.As(t, "alice").Place("k", tea())
	pool := pgtest.Pool(t, service)
	for _, statement := range []string{
		`DROP TABLE orders`, `DROP TABLE river_job`, `DROP INDEX orders_tenant_id_customer_id_id_idx`, `DROP SCHEMA public`,
		`DROP OWNED BY orders_owner`,
		`ALTER TABLE orders ADD COLUMN x int`, `ALTER TABLE stock DROP CONSTRAINT stock_on_hand_check`,
		`ALTER TABLE payments DISABLE TRIGGER ALL`, `ALTER TABLE orders OWNER TO orders_service`,
		`TRUNCATE orders CASCADE`, `TRUNCATE idempotency_keys`, `TRUNCATE river_job`,
		`CREATE TABLE x ()`, `CREATE TEMPORARY TABLE x ()`, `CREATE INDEX ON orders (status)`, `CREATE SCHEMA x`,
		`CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `CREATE ROLE x`, `CREATE DATABASE x`,
		`CREATE TRIGGER x BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
		`DELETE FROM orders`, `DELETE FROM payments`, `DELETE FROM refunds`, `DELETE FROM stock`, `DELETE FROM products`,
		`DELETE FROM order_lines`, `UPDATE order_lines SET quantity = 1`,
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9, true)`, `DELETE FROM river_migration`,
		`SET ROLE orders_owner`, `ALTER ROLE orders_owner NOLOGIN`, `GRANT orders_owner TO orders_service`,
		`COPY orders TO PROGRAM 'true'`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, statement)
		require.Equal(t, "42501", refused.Code, "%s: %v", statement, err) // insufficient_privilege
	}
}

// Ensure that role is enough for everything: the whole life of orders, and all that the worker does by itself: the purge,
// the reconciliation, River's leader, the rescue of a crashed worker's job, and River's own cleaning.
func TestPrivilegesTheServicesRoleIsEnough(t *testing.T) {
	t.Parallel()
	s, _ := startSeparate(t, "RECONCILE_AGE", "0s")
	s.Product(t, "TEA-001", 1999, 100)
	alice := s.As(t, "alice")
	lost, stuck := alice.Place("lost", tea()), alice.Place("stuck", tea())
	declined := alice.Place("declined", testkit.OrderBody("pm_card_chargeDeclined", "TEA-001", "1"))
	for _, prepare := range []string{
		`DELETE FROM river_job WHERE args->>'order_id' = '` + lost + `'`,
		`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 day', attempted_by = '{crashed}'
			WHERE args->>'order_id' = '` + stuck + `'`,
		`INSERT INTO river_job (state, finalized_at, kind, args, max_attempts)
			VALUES ('completed', now() - interval '1 year', 'old', '{}', 1)`,
		`INSERT INTO river_queue (name, updated_at) VALUES ('old', now() - interval '1 year')`,
		`UPDATE idempotency_keys SET created_at = now() - interval '2 days', expires_at = now() - interval '1 day'
			WHERE key = 'declined'`,
	} {
		_, err := s.DB.Exec(t.Context(), prepare)
		require.NoError(t, err)
	}
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	alice.PaymentStatus(lost, "succeeded")
	alice.PaymentStatus(stuck, "succeeded")
	alice.PaymentStatus(declined, "failed")
	for what, rows := range map[string]string{
		"the purge": `idempotency_keys WHERE key = 'declined'`, "the job cleaner": `river_job WHERE kind = 'old'`,
		"the queue cleaner": `river_queue WHERE name = 'old'`,
	} {
		testkit.Eventually(t, what, func() bool { return s.Count(t, rows) == 0 })
	}
	require.Equal(t, 1, s.Count(t, `river_leader`))
	liveOn(t, s, alice, lost, stuck)
}

// liveOn takes two paid orders to their ends, and changes the catalogue.
func liveOn(t *testing.T, s *testkit.Service, alice *testkit.Caller, shipped, cancelled string) {
	t.Helper()
	ok := func(a testkit.Answer, status int) testkit.Answer {
		t.Helper()
		require.Equal(t, status, a.Status, string(a.Body))
		return a
	}
	tag := func(path string) string { return alice.Get(path).Header.Get("ETag") }
	order := "/v1/orders/" + shipped
	ok(post(alice, order+"/refunds", "r", `{"amount":{"amount":5,"currency":"EUR"}}`), http.StatusAccepted)
	ok(alice.Do(http.MethodPut, order+"/shipping-address", testkit.Address, "If-Match", tag(order)), http.StatusOK)
	ok(alice.Do(http.MethodPost, order+"/shipment", `{"carrier":"c","tracking_number":"n"}`, "If-Match", tag(order)), http.StatusOK)
	order = "/v1/orders/" + cancelled
	ok(post(alice, order+"/cancellation", "c", `{}`, "If-Match", tag(order)), http.StatusOK)
	product := `{"name":"Sencha","price":{"amount":2099,"currency":"EUR"},"active":true}`
	ok(alice.Do(http.MethodPut, "/v1/products/TEA-001", product, "If-Match", tag("/v1/products/TEA-001")), http.StatusOK)
	ok(alice.Do(http.MethodPut, "/v1/products/NEW-001", product, "If-None-Match", "*"), http.StatusCreated)
	ok(post(alice, "/v1/products/NEW-001/stock-adjustments", "s", `{"delta":3}`), http.StatusOK)
	for _, id := range []string{shipped, cancelled} {
		testkit.Eventually(t, "refunds", func() bool {
			return s.Count(t, `refunds WHERE order_id = $1 AND status = 'succeeded'`, id) == 1
		})
	}
}
