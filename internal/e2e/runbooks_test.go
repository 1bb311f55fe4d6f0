package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure the overview finds a request's lines in the logs of the API and of the worker, and the session of another role that
// holds what an order waits for, and ends it.
func TestRunbookOverview(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.StopAPI(t)
	log := keepJournal(o.Service)
	o.StartAPI(t)
	o.env["API"] = o.URL
	worker := o.work()
	placed := place(o.As(t, "alice"), "k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	o.As(t, "alice").PaymentStatus(placed.Text("id"), "succeeded")
	worker.Stop()
	o.write("api.log", log.text())
	o.write("worker.log", worker.Output())
	o.work()
	culprit, _ := o.session(`BEGIN; SELECT FROM stock FOR UPDATE`)
	waiting := placeLater(o.As(t, "alice"), "k2", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	o.asAdmin(func() { o.awaitBlocked(1) })
	out := o.follow("README.md", nil, "40663c79f44045ff6added7d918156ab", placed.Header.Get("Request-Id"), "12345", culprit)
	require.Contains(t, out, "api.log:")
	require.Contains(t, out, "worker.log:")
	require.Contains(t, out, " "+culprit+" ")
	requirePlaced(t, testkit.Take(t, waiting))
}

// Ensure what the page on stuck payments tells to do shows a charge that the provider refuses, with its reason, and settles
// one whose job waits, without another charge.
func TestRunbookStuckPayments(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.work()
	refused := o.place("pm_card_unheardOf")
	o.faults(fault("charge", sandbox.FaultError500, 0))
	order := o.place("pm_card_visa")
	o.jobFailed("charge-order", order)
	o.jobFailed("charge-order", refused)
	o.Sandbox.ClearFaults()
	o.exec(`UPDATE payments SET created_at = created_at - interval '1 hour', updated_at = updated_at - interval '1 hour'`)
	o.exec(`UPDATE river_job SET scheduled_at = now() + interval '1 hour' WHERE kind = 'charge-order' AND state <> 'running'`)
	out := o.follow("stuck-payments.md", nil, "01a2299d-f76c-7627-b569-52ba45123348", order)
	require.Contains(t, out, `orders_payments_open{status="refused"} 1`)
	require.Contains(t, out, "resource_missing")
	o.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, o.charged(order))
}

// Ensure the page on a growing outbox shows a queue that somebody has paused, and lets it go on.
func TestRunbookGrowingOutbox(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.work()
	o.sh(`curl -fsS -X PUT $OPS/riverui/api/queues/default/pause`)
	order := o.place("pm_card_visa")
	out := o.follow("growing-outbox.md", nil)
	require.Contains(t, out, "charge-order")
	o.alice.PaymentStatus(order, "succeeded")
}

// Ensure the page on a provider's outage shows the error that the provider gives, and that jobs that wait for their next
// attempt run at once when it tells them to.
func TestRunbookProviderOutage(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.faults(fault("charge", sandbox.FaultRateLimit429, 0))
	o.work()
	order := o.place("pm_card_visa")
	o.jobFailed("charge-order", order)
	out := o.follow("provider-outage.md", []string{"Diagnose"})
	require.Contains(t, out, "429")
	o.exec(`UPDATE river_job SET scheduled_at = now() + interval '1 hour' WHERE kind = 'charge-order'`)
	o.follow("provider-outage.md", []string{"Act"}) // which ends by taking the faults away
	o.exec(`UPDATE river_job SET scheduled_at = now() + interval '1 hour' WHERE kind = 'charge-order' AND state = 'retryable'`)
	o.follow("provider-outage.md", []string{"Act"})
	o.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, o.charged(order))
}

// Ensure the page on a growing key table removes the expired keys at once.
func TestRunbookGrowingKeyTable(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	o.place("pm_card_visa")
	o.PeriodicJobsDue(t)
	o.work()
	awaitRun(t, o.Service, testkit.JobPurge)
	expiredKeys(t, o.Service, 10)
	old, end := o.session(`BEGIN; SELECT 1`) // which vacuum waits for, and old enough for the page to name it
	out := o.follow("growing-key-table.md", nil, "interval '5 minutes'", "interval '0'")
	require.Contains(t, out, "oldest_expired")
	require.Contains(t, out, " "+old+" ")
	end()
	testkit.Eventually(t, "expired keys removed", func() bool { return o.Count(t, `idempotency_keys`) == 1 })
}

// Ensure the page on rotating keys makes a set of both keys with which tokens of both work, while a key that is not in
// the set is refused.
func TestRunbookRotateSigningKeys(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	issuer := httptest.NewServer(http.FileServer(http.Dir(o.dir)))
	t.Cleanup(issuer.Close)
	former, next, leaked := testkit.Sandbox(t), testkit.Sandbox(t), testkit.Sandbox(t)
	o.env["OLD"], o.env["NEW"] = former.URL(), next.URL()
	o.sh(`curl -fsS $OLD/.well-known/jwks.json > jwks.json`)
	o.StopAPI(t)
	o.Env["AUTH_JWKS_URL"] = issuer.URL + "/jwks.json"
	o.StartAPI(t)
	o.env["API"], o.env["AUTH_JWKS_URL"] = o.URL, o.Env["AUTH_JWKS_URL"]
	o.env["LEAKED"] = o.token(leaked)
	for _, signedBy := range []*sandbox.Server{former, next} {
		o.env["TOKEN"] = o.token(signedBy)
		out := o.follow("rotate-signing-keys.md", nil)
		require.Contains(t, out, "\n200\n", out)
		require.Contains(t, out, "401\n", out)
	}
}

// asAdmin makes the test look as the administrator, who sees what the sessions of other roles do.
func (o *operator) asAdmin(look func()) {
	o.t.Helper()
	owner := o.DB
	defer func() { o.DB = owner }()
	o.DB = pgtest.Pool(o.t, o.env["ADMIN_URL"])
	look()
}

// session opens a session of the schema's owner, with a transaction, and returns the id of its process.
func (o *operator) session(sql string) (pid string, end func()) {
	o.t.Helper()
	conn, err := pgx.Connect(o.t.Context(), o.env["MIGRATE_DATABASE_URL"])
	require.NoError(o.t, err)
	end = func() { _ = conn.Close(context.WithoutCancel(o.t.Context())) }
	o.t.Cleanup(end)
	_, err = conn.Exec(o.t.Context(), sql)
	require.NoError(o.t, err)
	return strconv.Itoa(int(conn.PgConn().PID())), end
}

func (o *operator) token(signedBy *sandbox.Server) string {
	o.t.Helper()
	token, err := signedBy.Token("alice", "default", testkit.AllScopes, time.Hour)
	require.NoError(o.t, err)
	return token
}

func (o *operator) write(name, text string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644))
}
