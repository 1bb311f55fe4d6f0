package e2e

import (
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure a provider that is gone costs a line for each attempt and nothing else: orders are accepted all the same, the
// attempts come at growing distances, and when it is back every order is paid once.
func TestOutageProviderGone(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	provider := testkit.StartProxy(t, s.Env["STRIPE_BASE_URL"])
	s.Env["STRIPE_BASE_URL"] = provider.URL
	log := keepJournal(s.Service)
	s.StartWorker(t)
	provider.Cut()
	orders := []string{s.place("pm_card_visa"), s.place("pm_card_visa")} // too few failures to be left alone
	for _, order := range orders {
		s.awaitJob("charge-order", order, `cardinality(errors) >= 4`)
		s.requireBackoff(order)
		require.Equal(t, "pending", s.payment(order).Text("status"))
	}
	lines := linesOf(t, log.text())
	attempts := 0
	for _, l := range linesWith(lines, "job") {
		if l["operation"] == "charge-order" {
			attempts++
			require.Equal(t, "WARN", l[slog.LevelKey])
			require.Equal(t, "again", l["outcome"])
		}
	}
	require.GreaterOrEqual(t, attempts, 4*len(orders))
	require.LessOrEqual(t, len(lines), attempts+5, "lines beside those of the attempts:\n%s", log.text())
	require.NoError(t, provider.Mend())
	for _, order := range orders {
		s.alice.PaymentStatus(order, "succeeded")
		require.Equal(t, 1, s.charged(order))
	}
	require.Positive(t, scrape(t, s.Metrics["worker"]).Value(
		"orders_provider_call_duration_seconds", "call", "create_intent", "outcome", "unknown"))
	requireNoLeak(t, s.Service, "worker")
}

// Ensure a backlog does not hammer a failing provider, nor fill the log: after some failures in a row the worker asks it now
// and then only, and when it answers again everything is charged, once.
func TestOutageProviderIsLeftAlone(t *testing.T) {
	t.Parallel()
	const orders, most = 40, 32 // calls: ten and those at work beside them; and one every five seconds
	s := openShop(t, "WORKER_CONCURRENCY", "20")
	s.Product(t, "MUG-001", 100, orders)
	s.faults(fault(sandbox.OpCreateIntent, sandbox.FaultRateLimit429, 0))
	log := keepJournal(s.Service)
	for range orders {
		s.placeMug()
	}
	began := time.Now()
	s.StartWorker(t)
	testkit.Eventually(t, "a run of every job", func() bool {
		return s.Count(t, `river_job WHERE kind = 'charge-order' AND `+runs+` >= 1`) == orders
	})
	asked, lines := len(s.Sandbox.Attempts()), len(linesWith(linesOf(t, log.text()), "job"))
	trials := int(time.Since(began) / (5 * time.Second))
	require.LessOrEqual(t, asked, most+trials)
	require.LessOrEqual(t, lines, most+trials+10)
	s.Sandbox.ClearFaults()
	testkit.Eventually(t, "all orders paid", func() bool {
		s.dueNow("charge-order")
		return s.Count(t, `payments WHERE status = 'succeeded'`) == orders
	})
	require.Len(t, s.Sandbox.Ledger().Charges, orders)
}

// dueNow ends the pauses of the jobs of a kind, but for those that River has in its hands.
func (s shop) dueNow(kind string) {
	s.t.Helper()
	s.exec(`UPDATE river_job SET scheduled_at = now() WHERE id IN (SELECT id FROM river_job
		WHERE kind = $1 AND state IN ('retryable', 'scheduled') FOR UPDATE SKIP LOCKED)`, kind)
}

// runs is how often a job has run without an outcome: attempts that failed, and runs in which the provider was not called.
const runs = `(coalesce((metadata->>'snoozes')::int, 0) + coalesce(cardinality(errors), 0))`

// placeMug places an order of something that there are more of than of the shop's tea.
func (s shop) placeMug() string {
	s.t.Helper()
	return s.alice.Place(uuid.NewString(), testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
}

// leftAlone waits until the worker leaves a provider alone that fails at jobs of a kind.
func (s shop) leftAlone(kind string) {
	s.t.Helper()
	testkit.Eventually(s.t, kind+" that was not asked for", func() bool {
		return s.Count(s.t, `river_job WHERE kind = $1 AND metadata ? 'snoozes'`, kind) > 0
	})
}

// Ensure a provider that fails at refunds is asked for charges all the same.
func TestOutageOfRefundsLeavesChargesAlone(t *testing.T) {
	t.Parallel()
	s := openShop(t, "WORKER_CONCURRENCY", "4") // more refunds than the ten failures and those at work beside them
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultError500Before, 0))
	for i := range 20 {
		requireStatus(t, http.StatusAccepted, s.refund(order, "k"+strconv.Itoa(i), 10))
	}
	s.leftAlone("refund-charge")
	healthy := s.placePaid("pm_card_visa")
	require.Len(t, s.attempts("confirm", healthy), 1)
	require.Zero(t, s.Count(t, jobOf+` AND `+runs+` > 0`, "charge-order", healthy))
	s.Sandbox.ClearFaults()
}

// Ensure an order that is cancelled while a failing provider is left alone is not charged afterwards, since the provider was never called.
func TestOutageCancellationOfAnOrderThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "MUG-001", 100, 20)
	for range 12 {
		s.placeMug()
	}
	s.faults(fault(sandbox.OpCreateIntent, sandbox.FaultError500Before, 0))
	s.StartWorker(t)
	s.leftAlone("charge-order")
	place := func() (order string, asked bool) {
		order = s.placeMug()
		s.awaitJob("charge-order", order, runs+` > 0`)
		return order, len(s.attempts("intent", order)) > 0
	}
	others := 12
	order, asked := place()
	for ; asked; order, asked = place() {
		others++ // this one was asked for, to see whether the provider is well again
	}
	requireStatus(t, http.StatusOK, s.cancel(order))
	require.Equal(t, "canceled", s.payment(order).Text("status"))
	s.Sandbox.ClearFaults()
	testkit.Eventually(t, "the others paid", func() bool {
		s.dueNow("charge-order")
		return s.Count(t, `payments WHERE status = 'succeeded'`) == others
	})
	s.jobDone("charge-order", order)
	require.Empty(t, s.attempts("intent", order))
}

// requireBackoff checks that the n-th attempt that failed was followed by a pause of at least half of 2^(n-1) seconds.
func (s shop) requireBackoff(order string) {
	s.t.Helper()
	failed := queryValue[[]time.Time](s, `SELECT array_agg((e->>'at')::timestamptz ORDER BY e->>'at')
		FROM river_job, unnest(errors) e WHERE kind = 'charge-order' AND args->>'order_id' = $1`, order)
	for i := 1; i < len(failed); i++ {
		least := time.Second << (i - 1) / 2
		require.GreaterOrEqual(s.t, failed[i].Sub(failed[i-1]), least, "pause after attempt %d", i)
	}
}

// Ensure a worker without a database does not fill the log: River, which tries again every second, says the same once in
// a while. When the database is back the worker goes on by itself, and nothing is lost.
func TestOutageWorkerWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	api := s.alice
	database := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = database.URL
	log := keepJournal(s.Service)
	s.StartWorker(t)
	began := time.Now()
	database.Cut()
	order := api.Place("k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	testkit.Eventually(t, "a line that tells how often it was left out", func() bool {
		for _, l := range linesOf(t, log.text()) {
			if n, _ := l["repeated"].(float64); n >= 3 {
				return true
			}
		}
		return false
	})
	most := 2 + int(time.Since(began)/(10*time.Second))
	said := map[any]int{}
	for _, l := range linesOf(t, log.text()) {
		if l[slog.LevelKey] != "INFO" {
			said[l[slog.MessageKey]]++
		}
	}
	require.NotEmpty(t, said)
	for message, n := range said {
		require.LessOrEqual(t, n, most, message)
	}
	require.NoError(t, database.Mend())
	s.alice.PaymentStatus(order, "succeeded")
	requireNoLeak(t, s.Service, "worker")
}
