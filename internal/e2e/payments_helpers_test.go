package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
)

// The shop of the payment tests: one product, orders of two units of it.
const (
	shopSKU   = "TEA-001"
	shopStock = 10
	shopTotal = 3000
)

// shop is a service with something to sell and a customer. The worker is started by the test.
type shop struct {
	*testkit.Service
	t     *testing.T
	alice *testkit.Caller
}

func openShop(t *testing.T, env ...string) shop {
	t.Helper()
	s := testkit.Start(t, patient(env...)...)
	s.Product(t, shopSKU, shopTotal/2, shopStock)
	return shop{Service: s, t: t, alice: s.As(t, "alice")}
}

// openShopWithoutEvents is openShop with a provider that delivers no events: what a test sees comes of its own jobs.
func openShopWithoutEvents(t *testing.T, env ...string) shop {
	t.Helper()
	s := openShop(t, env...)
	s.Sandbox.SetEventsURL("")
	return s
}

// place places an order of shopTotal that is paid with the method.
func (s shop) place(method string) string {
	s.t.Helper()
	return s.alice.Place(uuid.NewString(), testkit.OrderBody(method, shopSKU, "2"))
}

// placePaid places an order and waits until it is paid.
func (s shop) placePaid(method string) string {
	s.t.Helper()
	order := s.place(method)
	s.alice.PaymentStatus(order, "succeeded")
	return order
}

func (s shop) order(order string) testkit.Answer { return s.alice.Get("/v1/orders/" + order) }

func (s shop) payment(order string) testkit.Answer {
	return s.alice.Get("/v1/orders/" + order + "/payment")
}

// cancel cancels an order with the version that it has now. It may be called by any goroutine.
func (s shop) cancel(order string) testkit.Answer {
	read, err := s.alice.Try(http.MethodGet, "/v1/orders/"+order, "")
	if err != nil {
		return testkit.Answer{Body: []byte(err.Error())}
	}
	return post(s.alice, "/v1/orders/"+order+"/cancellation", uuid.NewString(), `{"reason":"changed my mind"}`,
		"If-Match", read.Header.Get("ETag"))
}

// refund asks for a part of what an order cost. It may be called by any goroutine.
func (s shop) refund(order, key string, cents int) testkit.Answer {
	return post(s.alice, "/v1/orders/"+order+"/refunds", key,
		fmt.Sprintf(`{"amount":{"amount":%d,"currency":"EUR"},"reason":"a scratch"}`, cents))
}

// faults replaces the sandbox's faults.
func (s shop) faults(rules ...sandbox.FaultRule) {
	s.t.Helper()
	require.NoError(s.t, s.Sandbox.SetFaults(rules))
}

// fault is a rule for the next times requests; 0: for all.
func fault(operation, kind string, times int) sandbox.FaultRule {
	return sandbox.FaultRule{Operation: operation, Kind: kind, Times: times}
}

// held waits until the sandbox holds n requests.
func (s shop) held(n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Wait)
	defer cancel()
	require.NoError(s.t, s.Sandbox.WaitHeld(ctx, n))
}

// attempts is the calls that changed something at the provider for an order: those to create its intent, to confirm or
// to cancel it, or to refund.
func (s shop) attempts(step, order string) (found []sandbox.Attempt) {
	prefix := "order:default:" + order + ":" + step
	for _, a := range s.Sandbox.Attempts() {
		refund := step == "refund" && a.Path == "/v1/refunds" && a.Params["metadata[order_id]"] == order
		if refund || a.IdempotencyKey == prefix || strings.HasPrefix(a.IdempotencyKey, prefix+":") {
			found = append(found, a)
		}
	}
	return found
}

// keys is the idempotency keys of calls, each once, in the order of their first use.
func keys(attempts []sandbox.Attempt) (found []string) {
	for _, a := range attempts {
		if !slices.Contains(found, a.IdempotencyKey) {
			found = append(found, a.IdempotencyKey)
		}
	}
	return found
}

// requireSame checks that all attempts were the same call: one key, one set of parameters.
func requireSame(t testing.TB, key string, attempts []sandbox.Attempt) {
	t.Helper()
	require.NotEmpty(t, attempts)
	for _, a := range attempts {
		require.Equal(t, key, a.IdempotencyKey)
		require.Equal(t, attempts[0].ParamsSHA256, a.ParamsSHA256)
	}
}

func confirmKey(order string) string { return "order:default:" + order + ":confirm" }

// charged is the charges of an order that succeeded at the provider.
func (s shop) charged(order string) (n int) {
	for _, c := range s.Sandbox.Ledger().Charges {
		if c.OrderID == order && c.Status == "succeeded" {
			n++
		}
	}
	return n
}

// refunds is the refunds of an order in the provider's ledger with the status.
func (s shop) refunds(order, status string) (found []sandbox.LedgerRefund) {
	for _, r := range s.Sandbox.Ledger().Refunds {
		if r.OrderID == order && r.Status == status {
			found = append(found, r)
		}
	}
	return found
}

// refundedOnce waits until the whole of an order has gone back, and checks that it did so in one refund.
func (s shop) refundedOnce(order string) {
	s.t.Helper()
	s.jobDone("refund-charge", order)
	p := s.payment(order)
	require.Equal(s.t, "succeeded", p.Text("status"))
	require.EqualValues(s.t, shopTotal, p.Number("refunded.amount"), string(p.Body))
	back := s.refunds(order, "succeeded")
	require.Len(s.t, back, 1)
	require.EqualValues(s.t, shopTotal, back[0].Amount)
}

// jobOf selects the jobs of a kind of an order.
const jobOf = `river_job WHERE kind = $1 AND args->>'order_id' = $2`

// awaitJob waits until a job of an order fulfils the condition, which is SQL.
func (s shop) awaitJob(kind, order, condition string) {
	s.t.Helper()
	testkit.Eventually(s.t, kind+" with "+condition, func() bool {
		return s.Count(s.t, jobOf+` AND (`+condition+`)`, kind, order) > 0
	})
}

// jobDone waits until an order has jobs of the kind and all are completed.
func (s shop) jobDone(kind, order string) {
	s.t.Helper()
	s.awaitJob(kind, order, `state = 'completed'`)
	testkit.Eventually(s.t, kind+" completed", func() bool {
		return s.Count(s.t, jobOf+` AND state <> 'completed'`, kind, order) == 0
	})
}

// jobFailed waits until the last run of an order's job has failed and it waits for the next.
func (s shop) jobFailed(kind, order string) {
	s.t.Helper()
	s.awaitJob(kind, order, `cardinality(errors) > 0 AND state IN ('retryable', 'available', 'scheduled')`)
}

// runNow ends the pause of an order's job.
func (s shop) runNow(kind, order string) {
	s.t.Helper()
	s.exec(`UPDATE river_job SET state = 'available', scheduled_at = now()
		WHERE kind = $1 AND args->>'order_id' = $2 AND state IN ('available', 'retryable', 'scheduled')`, kind, order)
}

// enqueueCharge leaves one more charge-order job for an order.
func (s shop) enqueueCharge(order string) {
	s.t.Helper()
	s.enqueue(func(o app.Outbox) error {
		return o.ChargeOrder(s.t.Context(), app.OrderRef{Tenant: "default", OrderID: uuid.MustParse(order)})
	})
}

// enqueueRefund leaves one more refund-charge job for a refund.
func (s shop) enqueueRefund(order, refund string) {
	s.t.Helper()
	s.enqueue(func(o app.Outbox) error {
		ref := app.OrderRef{Tenant: "default", OrderID: uuid.MustParse(order)}
		return o.RefundCharge(s.t.Context(), ref, uuid.MustParse(refund))
	})
}

// enqueue uses the outbox that the service uses.
func (s shop) enqueue(insert func(app.Outbox) error) {
	s.t.Helper()
	part := s.Metrics["api"]
	store := postgres.NewStore(s.DB, outbox.In, postgres.Settings{AcquireTimeout: testkit.Wait}, part.Metrics, part.Traces)
	require.NoError(s.t, store.InTx(s.t.Context(), func(_ context.Context, tx app.Tx) error { return insert(tx.Outbox()) }))
}

func (s shop) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.DB.Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
}

// queryValue reads one value.
func queryValue[T any](s shop, sql string, args ...any) (v T) {
	s.t.Helper()
	require.NoError(s.t, s.DB.QueryRow(s.t.Context(), sql, args...).Scan(&v))
	return v
}

// awaitBlocked waits until n sessions of the service, of the API and the worker together, wait for a lock. A test that counts
// on which ones starts an idle worker: reconciliation would be one of them.
func (s shop) awaitBlocked(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, "sessions that wait for a lock", func() bool {
		return s.Count(s.t, `pg_stat_activity WHERE datname = current_database()
			AND application_name IN ('orders-api', 'orders-worker') AND wait_event_type = 'Lock'`) >= n
	})
}

// queue lets first and then second wait for a row that the test holds, and lets them go on in that order: PostgreSQL
// gives a row to those who wait for it first come, first served. It returns when row is free again.
func (s shop) queue(row *testkit.Held, first, second func()) {
	s.t.Helper()
	first()
	s.awaitBlocked(1)
	second()
	s.awaitBlocked(2)
	row.Rollback()
}

// hold locks the row of an order in a table: "orders" or "payments".
func (s shop) hold(table, order string) *testkit.Held {
	s.t.Helper()
	id := map[string]string{"orders": "id", "payments": "order_id"}[table]
	return s.Begin(s.t).Exec(`SELECT FROM `+table+` WHERE tenant_id = 'default' AND `+id+` = $1 FOR UPDATE`, order)
}

// later sends a request in the background when start is called; answer waits for what came of it.
func later(send func() testkit.Answer) (start func(), answer func() testkit.Answer) {
	var sent <-chan testkit.Answer
	start = func() { sent = testkit.Together(1, func(int) testkit.Answer { return send() }) }
	return start, func() testkit.Answer { return testkit.Receive(sent, 1)[0] }
}

func requireStatus(t testing.TB, status int, a testkit.Answer) {
	t.Helper()
	require.Equal(t, status, a.Status, strings.TrimSpace(string(a.Body)))
}
