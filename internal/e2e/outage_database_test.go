package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// requireAllTryAgain sends a request of each kind.
func (s shop) requireAllTryAgain(order, key string) {
	s.t.Helper()
	requireTryAgain(s.t, place(s.alice, key, testkit.OrderBody("pm_card_visa", shopSKU, "2")))
	requireTryAgain(s.t, s.order(order))
	requireTryAgain(s.t, s.payment(order))
	requireTryAgain(s.t, s.alice.Get("/v1/orders"))
	requireTryAgain(s.t, s.alice.Get("/v1/products/"+shopSKU))
	requireTryAgain(s.t, post(s.alice, "/v1/orders/"+order+"/cancellation", key, `{}`, "If-Match", `"1"`))
	requireTryAgain(s.t, s.refund(order, key, 1))
}

// requireRecovered checks that the service works again by itself: what was refused is accepted under the same key, what
// had been accepted is still there, and no connection is lost.
func (s shop) requireRecovered(first testkit.Answer, firstKey, key string) {
	s.t.Helper()
	body := testkit.OrderBody("pm_card_visa", shopSKU, "2")
	testkit.Eventually(s.t, "recovery", func() bool { return s.order(first.Text("id")).Status == http.StatusOK })
	requireReplay(s.t, first, place(s.alice, firstKey, body))
	requirePlaced(s.t, place(s.alice, key, body))
	requireNoLeak(s.t, s.Service, "api")
}

// Ensure /metrics comes while the database is silent, within the ten seconds that Prometheus waits, with all that does not need
// the database.
func TestOutageMetricsOfASilentDatabase(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	database := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = database.URL
	worker := testkit.Process(t, "worker", s.Env)
	s.placePaid("pm_card_visa")
	database.Silence()
	prometheus := http.Client{Timeout: 10 * time.Second}
	response, err := prometheus.Get(worker.Ops + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	seen := testkit.ParseMetrics(t, response.Body)
	require.EqualValues(t, 1, seen.Value("orders_provider_call_duration_seconds", "call", "confirm_intent", "outcome", "answered"))
	require.Contains(t, seen, "go_goroutines")
	require.NotContains(t, seen, "orders_outbox_jobs")
	database.Recover()
}

// Ensure a database that is gone is answered with 503 and Retry-After, whatever is asked, and that the API recovers by
// itself when it comes back.
func TestOutageDatabaseGone(t *testing.T) {
	t.Parallel()
	s, database := openShopBehind(t)
	first := place(s.alice, "first", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	requirePlaced(t, first)
	database.Cut()
	s.requireAllTryAgain(first.Text("id"), "k")
	require.NoError(t, database.Mend())
	s.requireRecovered(first, "first", "k")
	requireStored(t, s.Service, 2)
}

// Ensure a database that takes connections and answers nothing is answered within the bounds of the settings, here while
// it still does not answer; so is a request that was in the middle of its transaction, which leaves nothing.
func TestOutageDatabaseSilent(t *testing.T) {
	t.Parallel()
	s, database := openShopBehind(t, "DB_ACQUIRE_TIMEOUT", "2s", "IDEMPOTENCY_KEY_WAIT", "2s", "REQUEST_TIMEOUT", "15s",
		"DB_LOCK_TIMEOUT", "1m")
	first := place(s.alice, "first", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	requirePlaced(t, first)
	held, inFlight := s.placeHeld("in-flight")
	database.Silence()
	held.Commit()
	requireTryAgain(t, testkit.Take(t, inFlight))
	s.requireAllTryAgain(first.Text("id"), "k")
	database.Recover()
	s.requireRecovered(first, "first", "k")
	requireStored(t, s.Service, 2)
	requirePlaced(t, place(s.alice, "in-flight", testkit.OrderBody("pm_card_visa", shopSKU, "2")))
}

// Ensure a slow database makes the API slow and nothing else.
func TestOutageDatabaseSlow(t *testing.T) {
	t.Parallel()
	s, database := openShopBehind(t, "DB_MAX_CONNS", "2")
	database.Slow(20)
	answers := testkit.Together(5, func(i int) testkit.Answer {
		return place(s.alice, strconv.Itoa(i), testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	})
	for _, a := range testkit.Receive(answers, 5) {
		requirePlaced(t, a)
	}
	database.Recover()
	requireStored(t, s.Service, 5)
	requireNoLeak(t, s.Service, "api")
}

// Ensure clients that go away, two hundred of them, leave no connection behind, no order and no alarm.
func TestOutageClientsThatLeaveLeakNothing(t *testing.T) {
	t.Parallel()
	const n = 200
	s := openShop(t, "DB_MAX_CONNS", "4")
	held := s.HoldStock(t, shopSKU)
	gone, leave := leaving(s.alice)
	answers := testkit.Together(n, func(i int) testkit.Answer {
		return place(gone, "k"+strconv.Itoa(i), testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	})
	s.AwaitBlocked(t, 4)
	leave()
	for _, a := range testkit.Receive(answers, n) {
		require.Zero(t, a.Status)
	}
	requireNoLeak(t, s.Service, "api") // while the stock is still held
	held.Commit()
	requireStored(t, s.Service, 0)
	s.place("pm_card_visa")
	m := scrape(t, s.Metrics["api"])
	require.Zero(t, m.Value("orders_request_duration_seconds", "code", "try_again"), "clients that left count as errors")
	require.Positive(t, m.Value("orders_request_duration_seconds", "code", "client_gone"))
}
