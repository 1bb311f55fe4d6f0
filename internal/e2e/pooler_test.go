package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/migrations"
)

// startPooled starts the API behind a PgBouncer in transaction mode that has fewer sessions than the API connections.
func startPooled(t *testing.T, env ...string) *testkit.Service {
	t.Helper()
	testkit.MarkGoroutines(t)
	database := pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB))
	pooled := startPgBouncer(t, database)
	s := testkit.StartOn(t, database, patient(append([]string{"DATABASE_URL", pooled, "DB_POOLER", "transaction"}, env...)...)...)
	s.Product(t, "TEA-001", 1999, 1000)
	return s
}

// Ensure orders are placed once and paid once behind a pooler that gives every transaction another session.
func TestPoolerOrders(t *testing.T) {
	t.Parallel()
	s := startPooled(t)
	s.StartWorker(t)
	alice := s.As(t, "alice")
	const orders = 20
	twice := testkit.Together(2*orders, func(i int) testkit.Answer { return place(alice, strconv.Itoa(i/2), tea()) })
	ids := map[string]int{}
	for _, a := range testkit.Receive(twice, 2*orders) {
		require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
		ids[a.Text("id")]++
	}
	require.Len(t, ids, orders)
	for id, times := range ids {
		require.Equal(t, 2, times)
		alice.PaymentStatus(id, "succeeded")
		order := alice.Get("/v1/orders/" + id)
		require.Equal(t, http.StatusOK, order.Status)
		cancelled := post(alice, "/v1/orders/"+id+"/cancellation", "cancel-"+id, `{}`, "If-Match", order.Header.Get("ETag"))
		require.Equal(t, http.StatusOK, cancelled.Status, string(cancelled.Body))
	}
	require.Len(t, s.Sandbox.Ledger().Charges, orders)
}

// Ensure the winner of a key is found behind a pooler too, by duplicates that meet while it is at work.
func TestPoolerDuplicates(t *testing.T) {
	t.Parallel()
	s := startPooled(t)
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(20, "k", tea(), s.As(t, "alice"))
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, 19)
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 20))
	requireStored(t, s, 1)
}

// Ensure the limits hold behind a pooler, although no session carries them: a transaction sets its own.
func TestPoolerLimits(t *testing.T) {
	t.Parallel()
	s := startPooled(t, "DB_LOCK_TIMEOUT", "100ms")
	alice := s.As(t, "alice")
	path := "/v1/orders/" + alice.Place("k", tea())
	tag := alice.Get(path).Header.Get("ETag")
	move := func() testkit.Answer {
		return alice.Do(http.MethodPut, path+"/shipping-address", testkit.Address, "If-Match", tag)
	}
	held := s.Begin(t).Exec(`SELECT FROM orders FOR UPDATE`)
	requireRefused(t, move(), http.StatusServiceUnavailable, "try_again")
	held.Rollback()
	require.Equal(t, http.StatusOK, move().Status)
}

// Ensure /readyz can ask through a pooler, and that without its setting a start says that the pooler refuses it.
func TestPoolerSettingIsNeeded(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB))
	c := config.Database{
		Variable: "DATABASE_URL", URL: startPgBouncer(t, database), MaxConns: 2, ConnectTimeout: time.Second,
		AcquireTimeout: testkit.Wait,
	}
	_, err := postgres.Open(t.Context(), c, "test", noop.NewTracerProvider())
	require.ErrorContains(t, err, "unsupported startup parameter")

	c.Pooled, c.ConnectTimeout = true, testkit.Wait
	pool, err := postgres.Open(t.Context(), c, "test", noop.NewTracerProvider())
	require.NoError(t, err)
	defer pgtest.Close(t, pool)
	for range 5 {
		pending, err := migrations.Pending(t.Context(), pool)
		require.NoError(t, err)
		require.False(t, pending)
	}
}
