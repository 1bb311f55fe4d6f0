package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// The products of the run: what is ordered, and what is edited and counted. The second one is no stock that CheckBooks
// looks at, since what is done to its shelf is decided at random.
const (
	orderedSKU = "TEA-001"
	editedSKU  = "MUG-001"
)

// world is the running service and what the driver knows of it.
type world struct {
	*testkit.Service
	t          *testing.T
	line       *line
	alice      *testkit.Caller
	operations []*operation
	doc        *openapi3.T
	listed     map[string]bool // the codes of docs/problems.md
	tables     string          // a query for the state of all tables
	changes    string          // the next transaction that changes anything, when state was read
	state      string
	paid       []string // orders that are paid and that nothing was done to
	order      string   // the one of them that is used
	keys       int      // made so far
	seed       uint64
	seen       map[string]map[int]int // statuses by operation
	codes      map[string]int
	broken     int // violations so far
}

func openWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	// Nothing runs but what the driver asks for, so that a change has one cause. See refill.
	w := &world{
		Service: testkit.Start(t, "REQUEST_TIMEOUT", "2m", "PAYMENT_REFUSAL_LIMIT", "1s"), t: t, seed: seed,
		seen: map[string]map[int]int{}, codes: map[string]int{}, listed: listedCodes(t),
	}
	w.line = &line{address: strings.TrimPrefix(w.URL, "http://")}
	w.operations, w.doc = operations(t)
	w.mint("alice")
	w.alice = w.AsOf(t, "alice", "default", everyScope)
	w.Product(t, orderedSKU, 1999, 1_000_000_000)
	created := w.alice.Do(http.MethodPut, "/v1/products/"+editedSKU, `{"name":"Mug","price":{"amount":1,"currency":"EUR"},"active":true}`, headerIfNoneMatch, "*")
	require.Equal(t, http.StatusCreated, created.Status, string(created.Body))
	w.Sandbox.SetEventsURL("")
	w.readTables()
	w.look()
	return w
}

var codeRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

func listedCodes(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../../docs/problems.md")
	require.NoError(t, err)
	codes := map[string]bool{}
	for _, row := range codeRow.FindAllSubmatch(page, -1) {
		codes[string(row[1])] = true
	}
	require.NotEmpty(t, codes)
	return codes
}

// readTables builds the query for the state of every table that there is.
func (w *world) readTables() {
	w.t.Helper()
	rows, _ := w.DB.Query(w.t.Context(), `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'test_%' ORDER BY 1`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	require.Contains(w.t, tables, "idempotency_keys")
	var parts []string
	for _, table := range tables {
		parts = append(parts, fmt.Sprintf(`'%s', (SELECT count(*) || ':' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM %s t)`, table, table))
	}
	w.tables = `SELECT concat_ws(' ', ` + strings.Join(parts, ", ") + `)`
}

// look reads the state of all tables, unless no transaction has changed anything since the last look.
func (w *world) look() string {
	w.t.Helper()
	var changes string
	err := w.DB.QueryRow(w.t.Context(), `SELECT pg_snapshot_xmax(pg_current_snapshot())::text`).Scan(&changes)
	require.NoError(w.t, err)
	if changes != w.changes {
		require.NoError(w.t, w.DB.QueryRow(w.t.Context(), w.tables).Scan(&w.state))
		w.changes = changes
	}
	return w.state
}

// good is a request that the operation must accept, on resources that are there.
func (w *world) good(op *operation) request {
	w.t.Helper()
	q := request{method: op.method, target: w.fill(op, op.path), signed: op.signed}
	if !op.signed {
		q.set("Authorization", "Bearer "+op.token)
	}
	if op.keyed {
		w.keys++
		q.set(headerKey, fmt.Sprintf("hostile-%d", w.keys))
	}
	if op.versioned {
		q.set(headerIfMatch, w.alice.Get(w.fill(op, op.tagged)).Header.Get("ETag"))
	}
	if op.body != nil {
		q.set("Content-Type", op.media)
		q.body = []byte(encode(op.example))
	}
	return q
}

// fill puts what is there into the parameters of a path. A parameter that is not known here gets the contract's example.
func (w *world) fill(op *operation, path string) string {
	w.t.Helper()
	for _, ref := range op.parameters {
		if p := ref.Value; p.In == openapi3.ParameterInPath && strings.Contains(path, "{"+p.Name+"}") {
			value := fmt.Sprint(p.Example)
			switch p.Name {
			case "order_id":
				value = w.openOrder()
			case "sku":
				value = editedSKU
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
		}
	}
	return path
}

// openOrder is an order that is open, paid, and of which nothing was refunded.
func (w *world) openOrder() string {
	w.t.Helper()
	if w.order != "" && w.Count(w.t, `orders o WHERE id = $1 AND status = 'open'
		AND NOT EXISTS (SELECT FROM refunds r WHERE r.tenant_id = o.tenant_id AND r.order_id = o.id)`, w.order) == 1 {
		return w.order
	}
	if len(w.paid) == 0 {
		w.refill()
	}
	w.order, w.paid = w.paid[0], w.paid[1:]
	return w.order
}

// refill places orders and lets a worker run until nothing is left to do.
func (w *world) refill() {
	w.t.Helper()
	for range 40 {
		w.keys++
		w.paid = append(w.paid, w.alice.Place(fmt.Sprintf("refill-%d", w.keys), testkit.OrderBody("pm_card_visa", orderedSKU, "2")))
	}
	w.work("orders that are paid", func() bool {
		return w.Count(w.t, `payments WHERE order_id::text = ANY($1) AND status = 'succeeded'`, w.paid) == len(w.paid)
	})
	w.look()
}

// settle lets a worker run until nothing is left to do. A job that waits for its next attempt is not waited for.
func (w *world) settle() {
	w.t.Helper()
	w.work("everything settled", func() bool {
		_, err := w.DB.Exec(w.t.Context(), `UPDATE river_job SET state = 'available', scheduled_at = now()
			WHERE state IN ('retryable', 'scheduled') AND queue = 'default'`)
		require.NoError(w.t, err)
		return w.Count(w.t, `river_job WHERE finalized_at IS NULL AND queue = 'default'`) == 0
	})
}

// work runs a worker until done.
func (w *world) work(what string, done func() bool) {
	w.t.Helper()
	w.StartWorker(w.t)
	testkit.Eventually(w.t, what, done)
	w.StopWorker(w.t)
}

// send sends a request, holds what came of it to the contract, and reports what is not as it must be.
func (w *world) send(op *operation, q request, name string, must want) answer {
	w.t.Helper()
	before := w.state
	q.seal()
	a, err := w.line.exchange(q)
	var wrong []string
	if refusedUnread := a.status != 0 && q.parsed() == nil; err != nil && !refusedUnread {
		wrong = append(wrong, "no answer: "+err.Error())
	} else {
		wrong = w.judge(q, a, must)
	}
	after := w.look()
	if changes := a.status < 300 && !op.safe(); !changes && after != before {
		wrong = append(wrong, "changed what is stored:\n"+difference(before, after))
	}
	w.note(op, a)
	if len(wrong) > 0 {
		w.broken++
		w.t.Errorf("%s, %s: %d\n  %s\n  %s\n  seed %d: %s", op.id, name, a.status, strings.Join(wrong, "\n  "),
			shortenTo(string(a.body), 1000), w.seed, q.curl(w.URL))
	}
	if w.broken >= mostViolations {
		w.t.FailNow()
	}
	return a
}

// mostViolations ends a run that has found enough.
const mostViolations = 25

func (w *world) note(op *operation, a answer) {
	if w.seen[op.id] == nil {
		w.seen[op.id] = map[int]int{}
	}
	w.seen[op.id][a.status]++
	w.codes[a.code()]++
}

func (a answer) code() string {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.body, &p) // what has no code is no problem
	return p.Code
}

// difference tells which tables have changed.
func difference(before, after string) string {
	var lines []string
	b, a := strings.Fields(before), strings.Fields(after)
	for i := 1; i < len(a) && i < len(b); i += 2 {
		if a[i] != b[i] {
			lines = append(lines, fmt.Sprintf("    %s: %s, was %s", a[i-1], a[i], b[i]))
		}
	}
	return strings.Join(lines, "\n")
}

// parsed is the request as net/http's server reads it; nil where it answers by itself (docs/operations/http.md).
func (q request) parsed() *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(q.wire())))
	if err != nil {
		return nil
	}
	if expected := r.Header.Get("Expect"); expected != "" && !strings.EqualFold(expected, "100-continue") {
		return nil
	}
	for _, f := range q.header {
		if strings.ContainsFunc(f.value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil
		}
	}
	return r
}

func shorten(s string) string { return shortenTo(s, 60) }

func shortenTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
