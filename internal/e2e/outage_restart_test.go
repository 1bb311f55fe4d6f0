package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/migrations"
)

// openShopOn is openShop on a server of the test's own.
func openShopOn(t *testing.T, stock int64, env ...string) (shop, *postgres.Server) {
	t.Helper()
	server := pgtest.Server(t)
	database := pgtest.DatabaseOn(t, server, pgtest.Migrator(migrations.Digest(), migrations.UpDB))
	s := testkit.StartOn(t, database, patient(env...)...)
	s.Product(t, shopSKU, shopTotal/2, stock)
	return shop{Service: s, t: t, alice: s.As(t, "alice")}, server
}

// insistence is callers who place orders, each retried under its key until it is accepted, as real callers do.
type insistence struct {
	mu       sync.Mutex
	accepted map[string]string // the order that each key was told of
	refused  []string          // answers that no retry would help against: there must be none
	changed  chan struct{}
}

// insist places orders by several callers at once until stop is closed.
func (s shop) insist(callers int, stop <-chan struct{}, ended *sync.WaitGroup) *insistence {
	in := &insistence{accepted: map[string]string{}, changed: make(chan struct{}, 1)}
	for c := range callers {
		ended.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if !in.place(s.alice, fmt.Sprintf("%d-%d", c, i)) {
					return
				}
			}
		})
	}
	return in
}

// place reports whether the order was accepted at last, and could be read and edited at last.
func (in *insistence) place(c *testkit.Caller, key string) bool {
	placed, ok := in.until(func() testkit.Answer {
		return place(c, key, testkit.OrderBody("pm_card_visa", shopSKU, "1"))
	})
	if !ok {
		return false
	}
	id := placed.Text("id")
	in.note(func() { in.accepted[key] = id })
	for _, call := range []func() testkit.Answer{
		func() testkit.Answer { return send(c, http.MethodGet, "/v1/orders/"+id, "") },
		func() testkit.Answer { return send(c, http.MethodGet, "/v1/orders?limit=2", "") },
		func() testkit.Answer {
			return post(c, "/v1/products/"+shopSKU+"/stock-adjustments", key, `{"delta":1,"reason":"a crate came"}`)
		},
	} {
		if _, ok := in.until(call); !ok {
			return false
		}
	}
	return true
}

// until repeats a call until it is accepted. Only an answer that promises that a retry may help is followed by one.
func (in *insistence) until(call func() testkit.Answer) (a testkit.Answer, ok bool) {
	for deadline := time.Now().Add(testkit.Wait); ; {
		switch a = call(); {
		case a.Status == http.StatusServiceUnavailable && time.Now().Before(deadline),
			a.Status == http.StatusConflict && time.Now().Before(deadline):
			continue
		case a.Status == http.StatusOK, a.Status == http.StatusCreated:
			return a, true
		default:
			in.note(func() { in.refused = append(in.refused, fmt.Sprintf("%d: %s", a.Status, a.Body)) })
			return a, false
		}
	}
}

func (in *insistence) note(what func()) {
	in.mu.Lock()
	what()
	in.mu.Unlock()
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// more waits until n more orders have been accepted.
func (in *insistence) more(t testing.TB, n int) {
	t.Helper()
	for want := in.count() + n; in.count() < want && len(in.refusals()) == 0; {
		testkit.Take(t, in.changed)
	}
}

func (in *insistence) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.accepted)
}

func (in *insistence) refusals() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refused
}

// Ensure a database that crashes and comes back, twice, while orders are being placed and paid, loses no accepted order
// and no accepted delivery and doubles none, although the outcome of some COMMITs is unknown.
func TestOutageDatabaseCrashesUnderLoad(t *testing.T) {
	t.Parallel()
	s, server := openShopOn(t, 1_000_000, "DB_ACQUIRE_TIMEOUT", "2s", "PROVIDER_TIMEOUT", "4s", "JOB_TIMEOUT", "8s", "JOB_RESCUE_AFTER", "10s")
	s.StartWorker(t)
	var ended sync.WaitGroup
	stop := make(chan struct{})
	in := s.insist(4, stop, &ended)
	for range 2 {
		in.more(t, 10)
		require.NoError(t, server.Kill())
		require.NoError(t, server.Restart(t.Context()))
	}
	in.more(t, 10)
	close(stop)
	ended.Wait()
	require.Empty(t, in.refusals())
	testkit.Eventually(t, "connection of the test itself", func() bool { return s.DB.Ping(t.Context()) == nil })
	requireNoLeak(t, s.Service, "api")

	for key, id := range in.accepted {
		again := place(s.alice, key, testkit.OrderBody("pm_card_visa", shopSKU, "1"))
		require.Equal(t, id, again.Text("id"), "key %s", key)
		require.True(t, replayed(again), "key %s", key)
	}
	require.Equal(t, len(in.accepted), s.Count(t, `orders`))
	require.Equal(t, len(in.accepted), s.Count(t, `river_job WHERE kind = 'charge-order'`))
	s.Stocked(t, "default", shopSKU, int64(len(in.accepted))) // one unit came for each, and the books will tell whether
	s.StopWorker(t)
	s.timePasses()
	s.StartWorker(t) // takes over what the crashes have left running
	testkit.Eventually(t, "all orders paid", func() bool {
		s.dueNow("charge-order")
		return s.Count(t, `payments WHERE status = 'succeeded'`) == len(in.accepted)
	})
	require.Len(t, s.Sandbox.Ledger().Charges, len(in.accepted))
	requireNoLeak(t, s.Service, "worker")
}

// Ensure a server that has become a standby is answered as an outage, that its connections are given up so that the next
// ones can find the new primary, by the API and by the worker, and that reads go on.
func TestOutageDatabaseBecomesReadOnly(t *testing.T) {
	t.Parallel()
	s, server := openShopOn(t, 10, "DB_MAX_CONNS", "1")
	first := place(s.alice, "first", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	requirePlaced(t, first)
	before := s.pidOfAPI()
	s.readOnly(server, "on")

	requireTryAgain(t, place(s.alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "2")))
	requireStatus(t, http.StatusOK, s.order(first.Text("id")))
	require.NotEqual(t, before, s.pidOfAPI(), "the connection to the standby is still in use")
	s.readOnly(server, "off")
	s.requireRecovered(first, "first", "k")
	requireStored(t, s.Service, 2)
}

// Ensure a worker gives its connections to a standby up too, although it is River that meets them, and that it works on
// when there is a primary again.
func TestOutageWorkerLeavesAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s, server := openShopOn(t, 10)
	s.StartWorker(t)
	s.placePaid("pm_card_visa")
	log := keepJournal(s.Service)
	s.AnotherWorker(t) // whose log is read
	s.readOnly(server, "on")
	since := queryValue[time.Time](s, `SELECT now()`)
	testkit.Eventually(t, "line of a worker that could not write", func() bool {
		return strings.Contains(log.text(), "25006")
	})
	// River writes when it looks for jobs: no session that has done so is older than the change.
	testkit.Eventually(t, "sessions of the workers renewed", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-worker'
			AND backend_start < $1 AND query LIKE '%UPDATE%river_job%'`, since) == 0
	})
	s.readOnly(server, "off")
	s.placePaid("pm_card_visa")
	requireNoLeak(t, s.Service, "worker")
}

// readOnly makes the server refuse to write, as a standby does, or undoes it. Sessions notice at their next statement.
func (s shop) readOnly(server *postgres.Server, value string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), server.URL("postgres"))
	require.NoError(s.t, err)
	defer conn.Close(s.t.Context())
	_, err = conn.Exec(s.t.Context(), `ALTER SYSTEM SET default_transaction_read_only = `+value)
	require.NoError(s.t, err)
	_, err = conn.Exec(s.t.Context(), `SELECT pg_reload_conf()`)
	require.NoError(s.t, err)
	testkit.Eventually(s.t, "server read-only "+value, func() bool {
		return queryValue[string](s, `SHOW default_transaction_read_only`) == value
	})
}

// pidOfAPI is the one session of an API with a pool of one.
func (s shop) pidOfAPI() int {
	s.t.Helper()
	return queryValue[int](s, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-api'`)
}
