package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/bulk"
	"example.com/orders/internal/dev/testkit"
)

const (
	loadedOrders = 50_000
	loadedSKUs   = 5_000
	// A statement of the hot path touches a request's own rows, or a page or a batch of them. What PostgreSQL expects
	// without knowing the parameters is larger than that, and far from a table.
	mostRows = loadedOrders / 5
)

// large is the tables that no statement of the hot path may read from end to end. The others are small by design.
var large = []string{"idempotency_keys", "order_lines", "orders", "payments", "products", "river_job", "stock"}

// Ensure each statement that the hot path really sends finds its rows by an index: as PostgreSQL plans it for any
// parameters, and as it runs with those that were sent, more often than PostgreSQL plans anew. The tables hold many
// finished orders.
func TestPlansUseIndexes(t *testing.T) {
	t.Parallel()
	s, wire := wiredShop(t)
	rows := bulk.Rows{Tenant: "default", Orders: loadedOrders, Expired: loadedOrders / 10}
	conn := s.session(t)
	require.NoError(t, bulk.Load(t.Context(), conn, s.templates, rows, func(int) {}))
	_, err := conn.Exec(t.Context(), `VACUUM ANALYZE`)
	require.NoError(t, err)

	before := s.readFromEndToEnd(t)
	s.StartAPI(t)
	path := s.runHotPath(t, wire)
	require.Equal(t, before, s.readFromEndToEnd(t), "rows that were read by scans of whole tables")
	for _, o := range path {
		for _, sql := range o.statements {
			s.requireIndexed(t, conn, o.name, sql)
		}
	}
}

// Ensure the hot path is ready to be spread by tenant: each of its statements names the tenant, and none needs what a
// table that is spread cannot give.
func TestPlansNameTheTenant(t *testing.T) {
	t.Parallel()
	s, wire := wiredShop(t)
	for _, o := range s.runHotPath(t, wire) {
		for _, sql := range o.statements {
			requireSpreadable(t, o.name, sql)
		}
	}
}

var (
	ourTables = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE|USING)\s+(idempotency_keys|order_lines|orders|payments|products|refunds|stock)\b`)
	names     = regexp.MustCompile(`(?i)\btenant_id\s*=|=\s*\w*\.?tenant_id\b|INSERT INTO \w+ (AS \w+ )?\(tenant_id,`)
	// The purge's count of what is left reads the keys of all tenants, which a spread table can answer.
	ofAllTenants = regexp.MustCompile(`(?is)^\s*SELECT count\(\*\).*\bFROM idempotency_keys WHERE expires_at\b[^;]*\bLIMIT\b`)
	clock        = regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(|\bCURRENT_(TIMESTAMP|DATE|TIME)\b`)
	conflict     = regexp.MustCompile(`(?i)\bON\s+CONFLICT\b`)
	unportable   = regexp.MustCompile(`(?i)\bctid\b|\bON\s+CONSTRAINT\b|\btableoid\b|\bcurrval\b|\blastval\b`)
)

func requireSpreadable(t *testing.T, operation, sql string) {
	t.Helper()
	if !ourTables.MatchString(sql) || ofAllTenants.MatchString(sql) {
		return
	}
	require.Regexp(t, names, sql, "%s sends a statement that does not name the tenant", operation)
	require.NotRegexp(t, unportable, sql, operation)
	if where := conflict.FindStringIndex(sql); where != nil { // what is before it is worked out before rows are spread
		require.NotRegexp(t, clock, sql[where[0]:], "%s lets the database tell the time in ON CONFLICT", operation)
	}
}

// wired is a shop whose statements are seen.
type wired struct {
	*testkit.Service
	templates []bulk.Template
}

func wiredShop(t *testing.T) (wired, *testkit.Proxy) {
	t.Helper()
	s := wired{Service: testkit.Start(t)}
	s.StopAPI(t)
	wire := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = wire.URL
	s.Env["PURGE_INTERVAL"], s.Env["RECONCILE_INTERVAL"], s.Env["RECONCILE_AGE"] = "1s", "1s", "0s"
	s.Env["DB_MAX_CONNS"] = "1" // each connection plans for itself
	s.StartAPI(t)
	s.Env["DB_MAX_CONNS"] = "8"
	s.fillCatalogue(t)
	t.Cleanup(func() { // of the copies the provider's books know nothing
		_, err := s.DB.Exec(context.WithoutCancel(t.Context()), `TRUNCATE orders, order_lines, payments, refunds, idempotency_keys`)
		require.NoError(t, err)
	})
	s.StartWorker(t)
	for n := range 10 {
		key := fmt.Sprintf("template-%d", n)
		caller := s.As(t, fmt.Sprintf("customer-%d", n))
		id := caller.Place(key, testkit.OrderBody("pm_card_visa", "SKU-100001", "1", "SKU-100002", "1"))
		caller.PaymentStatus(id, "succeeded")
		s.templates = append(s.templates, bulk.Template{Actor: fmt.Sprintf("customer-%d", n), Key: key, OrderID: id})
	}
	s.StopWorker(t)
	return s, wire
}

func (s wired) fillCatalogue(t *testing.T) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO products SELECT 'default', 'SKU-' || 100000 + i, 'Product', 1999, 'EUR', true, t, t, 1
			FROM generate_series(1, $1::int) i, now() t`,
		`INSERT INTO stock SELECT 'default', 'SKU-' || 100000 + i, 1000, now(), 1 FROM generate_series(1, $1::int) i`,
	} {
		_, err := s.DB.Exec(t.Context(), sql, loadedSKUs)
		require.NoError(t, err)
	}
}

func (s wired) session(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// operation is what the service has sent for it.
type operation struct {
	name       string
	statements []string // each once
}

// planned is how often each operation runs: after five times PostgreSQL may go on with a plan for any parameters.
const planned = 8

// runHotPath runs each operation several times and notes what it sends.
func (s wired) runHotPath(t *testing.T, wire *testkit.Proxy) (path []operation) {
	t.Helper()
	customer, clerk := s.As(t, "customer-3"), s.AsOf(t, "clerk", "default", testkit.AllScopes+" orders:admin")
	body := testkit.OrderBody("pm_card_visa", "SKU-100007", "1", "SKU-104000", "2")
	orders := make([]string, planned)
	for _, o := range []struct {
		name string
		run  func(n int) testkit.Answer
	}{
		{"place-order", func(n int) testkit.Answer {
			orders[n] = "/v1/orders/" + customer.Place(fmt.Sprintf("new-%d", n), body)
			return testkit.Answer{}
		}},
		{"replay", func(n int) testkit.Answer { return post(customer, "/v1/orders", fmt.Sprintf("new-%d", n), body) }},
		{"get-order", func(n int) testkit.Answer { return customer.Get(orders[n]) }},
		{"get-payment", func(n int) testkit.Answer { return customer.Get(orders[n] + "/payment") }},
		{"list-orders", func(int) testkit.Answer { return secondPage(customer, "/v1/orders?limit=20") }},
		{"list-orders by status", func(int) testkit.Answer { return secondPage(customer, "/v1/orders?limit=20&status=open") }},
		{"list-orders of all", func(int) testkit.Answer { return secondPage(clerk, "/v1/orders?limit=20") }},
		{"get-product", func(int) testkit.Answer { return customer.Get("/v1/products/SKU-100500") }},
		{"get-stock", func(int) testkit.Answer { return customer.Get("/v1/products/SKU-100500/stock") }},
		{"list-products", func(int) testkit.Answer { return secondPage(customer, "/v1/products?limit=20") }},
		{"change-shipping-address", func(n int) testkit.Answer {
			return customer.Do(http.MethodPut, orders[n]+"/shipping-address", testkit.Address,
				"If-Match", customer.Get(orders[n]).Header.Get("ETag"))
		}},
		{"cancel-order", func(n int) testkit.Answer {
			return post(customer, orders[n]+"/cancellation", fmt.Sprintf("cancel-%d", n), `{}`,
				"If-Match", customer.Get(orders[n]).Header.Get("ETag"))
		}},
	} {
		wire.Record()
		for n := range planned {
			a := o.run(n)
			require.Less(t, a.Status, 300, "%s: %s", o.name, a.Body)
		}
		path = append(path, operation{o.name, once(wire.Statements("orders-api"))})
		require.NotEmpty(t, path[len(path)-1].statements, o.name)
	}
	return append(path, s.runJobs(t, wire, customer, body))
}

// runJobs lets the worker charge orders, purge and reconcile.
func (s wired) runJobs(t *testing.T, wire *testkit.Proxy, customer *testkit.Caller, body string) operation {
	t.Helper()
	ids := make([]string, planned)
	for n := range ids {
		ids[n] = customer.Place(fmt.Sprintf("charged-%d", n), body)
	}
	wire.Record()
	s.StartWorker(t)
	for _, id := range ids {
		customer.PaymentStatus(id, "succeeded")
	}
	sends := func(part string) bool {
		return slices.ContainsFunc(wire.Statements("orders-worker"), func(sql string) bool { return strings.Contains(sql, part) })
	}
	testkit.Eventually(t, "purge and reconciliation", func() bool {
		return sends("DELETE FROM idempotency_keys") && sends("WHERE NOT EXISTS")
	})
	s.StopWorker(t)
	return operation{"the worker's jobs", once(slices.DeleteFunc(wire.Statements("orders-worker"), func(sql string) bool {
		return !ourTables.MatchString(sql) // River's
	}))}
}

// secondPage reads two pages, as the second one's statement has one condition more.
func secondPage(c *testkit.Caller, path string) testkit.Answer {
	first := c.Get(path)
	if cursor := first.Text("page.next_cursor"); cursor != "" {
		return c.Get(path + "&after=" + cursor)
	}
	return first
}

func once(statements []string) (all []string) {
	for _, sql := range statements {
		if !slices.Contains(all, sql) {
			all = append(all, sql)
		}
	}
	return all
}

// readFromEndToEnd counts the rows that scans of whole tables have read, once the service has no session left: a
// session reports what it has read at its end at the latest.
func (s wired) readFromEndToEnd(t *testing.T) map[string]int64 {
	t.Helper()
	s.StopAPI(t)
	testkit.Eventually(t, "end of the service's sessions", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'orders-%'`) == 0
	})
	read := map[string]int64{}
	rows, _ := s.DB.Query(t.Context(), `SELECT relname::text, seq_tup_read FROM pg_stat_user_tables WHERE relname = ANY($1)`, large)
	var table string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&table, &n}, func() error { read[table] = n; return nil })
	require.NoError(t, err)
	require.Len(t, read, len(large))
	return read
}

var parameter = regexp.MustCompile(`\$([0-9]+)`)

// requireIndexed plans a statement for any parameters.
func (s wired) requireIndexed(t *testing.T, conn *pgx.Conn, operation, sql string) {
	t.Helper()
	if !ourTables.MatchString(sql) && !strings.Contains(sql, "river_job") {
		return
	}
	most := 0
	for _, m := range parameter.FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	execute := `EXECUTE planned`
	if most > 0 {
		execute += `(NULL` + strings.Repeat(`, NULL`, most-1) + `)`
	}
	var raw []byte
	for _, step := range []string{`SET plan_cache_mode = force_generic_plan`, `PREPARE planned AS ` + sql} {
		_, err := conn.Exec(t.Context(), step, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, sql)
	}
	err := conn.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+execute, pgx.QueryExecModeSimpleProtocol).Scan(&raw)
	require.NoError(t, err, sql)
	_, err = conn.Exec(t.Context(), `DEALLOCATE planned`)
	require.NoError(t, err)
	var plans []struct{ Plan plan }
	require.NoError(t, json.Unmarshal(raw, &plans))
	require.Len(t, plans, 1)
	require.Empty(t, plans[0].Plan.scanned(), "%s reads a large table from end to end:\n%s\n%s", operation, sql, raw)
	require.LessOrEqual(t, plans[0].Plan.Rows, float64(mostRows), "%s: PostgreSQL expects too many rows:\n%s\n%s", operation, sql, raw)
}

// plan is a node of EXPLAIN's answer.
type plan struct {
	Type  string  `json:"Node Type"`     //nolint:tagliatelle // as EXPLAIN has it
	Table string  `json:"Relation Name"` //nolint:tagliatelle // as EXPLAIN has it
	Rows  float64 `json:"Plan Rows"`     //nolint:tagliatelle // as EXPLAIN has it
	Plans []plan
}

// scanned is the large tables that a plan reads from end to end.
func (p plan) scanned() (tables []string) {
	if p.Type == "Seq Scan" && slices.Contains(large, p.Table) {
		tables = append(tables, p.Table)
	}
	for _, below := range p.Plans {
		tables = append(tables, below.scanned()...)
	}
	return tables
}
