package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

const testSKUs = 50

// written lists the tables that place-order writes, each with the column by which its rows are sorted for comparison.
var written = map[string]string{
	"idempotency_keys": "1", "orders": "1", "order_lines": "line_no", "payments": "1", "river_job": "1", "stock": "sku",
}

// free lists the columns whose values differ from order to order. Only their sizes are compared.
var free = []string{
	"actor_id", "args", "created_at", "customer_id", "expires_at", "fingerprint", "id", "key", "metadata", "name", "order_id",
	"response_body", "response_headers", "scheduled_at", "sku", "unique_key", "updated_at",
}

// Ensure the baseline does the work of place-order: it writes the same rows, column by column, for one line and for five,
// and sends the same kinds of statements to the same tables.
func TestBaselineDoesTheWorkOfPlaceOrder(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{1, maxLines} {
		s, wire := startBehindWire(t)
		byService := s.place(t, lines)
		sent := verbs(wire.Statements("orders-api"))
		script, err := baselineScript(testSKUs, lines)
		require.NoError(t, err)
		script = fill(t, script)
		byBaseline := s.rows(t, func() { s.runScript(t, script) })
		require.Len(t, byService["order_lines"], lines)
		require.Len(t, byService["stock"], lines)
		for table := range written {
			require.Len(t, byBaseline[table], len(byService[table]), table)
			for i := range byService[table] {
				requireAlike(t, table, byService[table][i], byBaseline[table][i])
			}
		}
		requireSameVerbs(t, sent, verbs(strings.Split(script, ";\n")))
	}
}

// requireSameVerbs compares the statements by verb and table. It leaves out the service's statements without a table:
// limits, the clock, the key's advisory lock, notifications.
func requireSameVerbs(t *testing.T, service, baseline []string) {
	t.Helper()
	service = slices.DeleteFunc(service, func(v string) bool {
		return v == "SELECT"
	})
	require.Equal(t, baseline, service, "the baseline does not send what the service sends")
}

var verb = regexp.MustCompile(`(?is)\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|TRUNCATE)\b.*?\b` +
	`(idempotency_keys|products|stock|orders|order_lines|payments|refunds|river_job)\b`)

// verbs returns the distinct pairs of verb and table in the statements, sorted, such as "INSERT INTO orders".
func verbs(statements []string) (all []string) {
	for _, sql := range statements {
		sql = regexp.MustCompile(`--.*|/\*.*?\*/`).ReplaceAllString(sql, "")
		v := ""
		if m := verb.FindStringSubmatch(sql); m != nil {
			v = strings.ToUpper(m[1]) + " " + m[2]
			if i := strings.Index(strings.ToUpper(sql), "INSERT INTO "); i > 0 { // after a WITH
				v = "INSERT INTO " + verb.FindStringSubmatch(sql[i:])[2]
			}
			if strings.Contains(strings.ToUpper(sql), "FOR UPDATE") {
				v = "LOCK " + m[2]
			}
		} else if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(sql)), "SELECT") {
			v = "SELECT"
		}
		if v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// requireAlike compares two rows: the same columns are NULL, free columns have about the same size, all others are equal.
func requireAlike(t *testing.T, table string, service, baseline map[string]any) {
	t.Helper()
	for column, want := range service {
		got := baseline[column]
		where := table + "." + column
		if !slices.Contains(free, column) {
			require.Equal(t, want, got, where)
			continue
		}
		require.Equal(t, want == nil, got == nil, "%s is NULL in one", where)
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		require.InDelta(t, len(a), len(b), math.Max(12, float64(len(a))/4), "%s: %s and %s", where, a, b)
	}
}

type shop struct{ *testkit.Service }

func startBehindWire(t *testing.T) (shop, *testkit.Proxy) {
	t.Helper()
	s := testkit.Start(t)
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO products SELECT $1, 'SKU-' || 100000 + i, 'Product ' || i, 1999, 'EUR', true, now(), now(), 1
		FROM generate_series(0, $2 - 1) i`, tenant, testSKUs)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), `
		INSERT INTO stock SELECT $1, 'SKU-' || 100000 + i, 1000, now(), 1 FROM generate_series(0, $2 - 1) i`, tenant, testSKUs)
	require.NoError(t, err)
	s.StopAPI(t)
	wire := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = wire.URL
	s.StartAPI(t)
	wire.Record()
	return shop{s}, wire
}

func (s shop) place(t *testing.T, lines int) map[string][]map[string]any {
	t.Helper()
	caller := s.AsOf(t, actor(rand.IntN(actors)), tenant, testkit.AllScopes)
	return s.rows(t, func() {
		a := caller.Do(http.MethodPost, "/v1/orders", orderBody(testSKUs, lines), "Idempotency-Key", strings.Repeat("k", 36))
		require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	})
}

// rows returns the rows that change writes, by table. It recognizes them by their xmin.
func (s shop) rows(t *testing.T, change func()) map[string][]map[string]any {
	t.Helper()
	// The service and the baseline may sell the same sku: both start from the same stock.
	_, err := s.DB.Exec(t.Context(), `UPDATE stock SET on_hand = 1000, version = 1`)
	require.NoError(t, err)
	var before string
	require.NoError(t, s.DB.QueryRow(t.Context(), `SELECT pg_current_xact_id()::text`).Scan(&before))
	change()
	all := map[string][]map[string]any{}
	for table, order := range written {
		rows, _ := s.DB.Query(t.Context(),
			`SELECT to_jsonb(r) FROM `+table+` r WHERE xmin::text::bigint > $1::bigint ORDER BY `+order, before)
		list, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
		require.NoError(t, err)
		for _, row := range list {
			if table == "river_job" {
				delete(row, "id") // a sequence number
			}
		}
		all[table] = list
	}
	return all
}

var variable = regexp.MustCompile(`([^:]):([a-z]+)\b`)

// fill does what pgbench does with the script: it removes pgbench's own commands and the comments, and replaces the
// variables.
func fill(t *testing.T, script string) string {
	t.Helper()
	values := map[string]string{
		"n": strconv.FormatInt(time.Now().UnixMilli(), 10), "r": strconv.Itoa(rand.IntN(1 << 60)), "actor": "7", "base": "3",
	}
	var lines []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, `\set `) && !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return variable.ReplaceAllStringFunc(strings.Join(lines, ""), func(found string) string {
		m := variable.FindStringSubmatch(found)
		require.Contains(t, values, m[2])
		return m[1] + values[m[2]]
	})
}

func (s shop) runScript(t *testing.T, script string) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), script) // without arguments: several statements at once
	require.NoError(t, err)
}

// Ensure the rate is read from what pgbench prints, and nothing else is taken for it.
func TestPgbenchRate(t *testing.T) {
	t.Parallel()
	rate, err := pgbenchRate("latency average = 5 ms\ntps = 1523.75 (without initial connection time)\n")
	require.NoError(t, err)
	require.Equal(t, 1523.75, rate)
	_, err = pgbenchRate("pgbench: error: connection refused")
	require.Error(t, err)
}
