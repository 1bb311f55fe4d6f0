package e2e

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// additive is what a migration may do while the release before it still runs. Its columns have names that no migration of
// the service takes.
var additive = []string{
	`ALTER TABLE orders ADD COLUMN test_note text`,
	`ALTER TABLE orders ADD COLUMN test_channel text NOT NULL DEFAULT 'web'`,
	`ALTER TABLE order_lines ADD COLUMN test_discount bigint NOT NULL DEFAULT 0`,
	`ALTER TABLE products ADD COLUMN test_description text NOT NULL DEFAULT ''`,
	`ALTER TABLE stock ADD COLUMN test_reserved bigint NOT NULL DEFAULT 0`,
	`ALTER TABLE payments ADD COLUMN test_descriptor text`,
	`ALTER TABLE refunds ADD COLUMN test_descriptor text`,
	`ALTER TABLE idempotency_keys ADD COLUMN test_region text NOT NULL DEFAULT 'eu'`,
	`ALTER TABLE river_job ADD COLUMN test_extra jsonb`, // as a newer River's migration may
	`DROP INDEX orders_tenant_id_customer_id_id_idx`,
	`DROP INDEX idempotency_keys_expires_at_idx`,
	`CREATE INDEX ON orders (tenant_id, status, id DESC)`,
}

// Ensure a running release survives the additive migrations of the next one: its statements are prepared and used, the
// schema changes beneath them, and no request fails.
func TestMigrationAddsWhileAReleaseRuns(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, patient("DB_MAX_CONNS", "4")...)
	s.Product(t, "TEA-001", 1999, 1_000_000)
	s.StartWorker(t)
	traffic := startTraffic(s.As(t, "alice"), 3)
	traffic.rounds(t, 3) // of each caller: every connection has prepared every statement
	for _, change := range additive {
		migrateAs(t, s, change)
		traffic.rounds(t, 1)
	}
	for _, order := range traffic.stop(t) {
		s.As(t, "alice").PaymentStatus(order, "succeeded")
	}
}

// migrateAs changes the schema as cmd/migrate does: it does not hold others up for long, and tries again.
func migrateAs(t testing.TB, s *testkit.Service, change string) {
	t.Helper()
	testkit.Eventually(t, change, func() bool {
		err := pgx.BeginFunc(t.Context(), s.DB, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '500ms'; `+change)
			return err
		})
		var blocked *pgconn.PgError
		if err != nil {
			require.ErrorAs(t, err, &blocked)
			require.Contains(t, []string{"55P03", "40P01"}, blocked.Code, "%v", err)
		}
		return err == nil
	})
}

// traffic is callers who place an order, retry it and read it, round after round.
type traffic struct {
	caller *testkit.Caller
	name   string         // of its keys
	done   []atomic.Int64 // rounds, by caller
	stopit chan struct{}
	ended  sync.WaitGroup
	failed atomic.Pointer[string]
	mu     sync.Mutex
	orders []string
}

func startTraffic(c *testkit.Caller, callers int) *traffic {
	f := &traffic{caller: c, name: rand.Text(), done: make([]atomic.Int64, callers), stopit: make(chan struct{})}
	for i := range callers {
		f.ended.Go(func() { f.drive(i) })
	}
	return f
}

func (f *traffic) drive(i int) {
	for round := 0; f.failed.Load() == nil; round++ {
		select {
		case <-f.stopit:
			return
		default:
			f.round(fmt.Sprintf("%s-%d-%d", f.name, i, round))
			f.done[i].Add(1)
		}
	}
}

func (f *traffic) round(key string) {
	first := place(f.caller, key, testkit.OrderBody("pm_card_visa", "TEA-001", "1"))
	f.expect(first, http.StatusCreated)
	f.expect(place(f.caller, key, testkit.OrderBody("pm_card_visa", "TEA-001", "1")), http.StatusCreated)
	id := first.Text("id")
	for _, path := range []string{
		"/v1/orders/" + id, "/v1/orders/" + id + "/payment", "/v1/orders?limit=5", "/v1/products/TEA-001",
		"/v1/products/TEA-001/stock", "/v1/products",
	} {
		f.expect(readLater(f.caller, path), http.StatusOK)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, id)
}

func (f *traffic) expect(a testkit.Answer, status int) {
	if a.Status != status {
		text := fmt.Sprintf("%d instead of %d: %s", a.Status, status, a.Body)
		f.failed.CompareAndSwap(nil, &text)
	}
}

// rounds waits until every caller has begun and ended n further rounds.
func (f *traffic) rounds(t testing.TB, n int64) {
	t.Helper()
	before := make([]int64, len(f.done))
	for i := range f.done {
		before[i] = f.done[i].Load()
	}
	testkit.Eventually(t, "rounds", func() bool {
		for i := range f.done {
			if f.failed.Load() == nil && f.done[i].Load() < before[i]+n+1 {
				return false
			}
		}
		return true
	})
	f.check(t)
}

func (f *traffic) check(t testing.TB) {
	t.Helper()
	if why := f.failed.Load(); why != nil {
		require.FailNow(t, "a request failed", *why)
	}
}

func (f *traffic) stop(t testing.TB) []string {
	t.Helper()
	close(f.stopit)
	f.ended.Wait()
	f.check(t)
	return f.orders
}

// Ensure that even a change of type under prepared statements, which PostgreSQL answers with "cached plan must not
// change result type", fails no request: reads and whole transactions are run again, on connections that have not
// prepared anything yet.
func TestMigrationChangesATypeWhileAReleaseRuns(t *testing.T) {
	t.Parallel()
	for _, connections := range []string{"1", "8"} {
		for _, first := range []string{"reads", "writes"} {
			t.Run(connections+" connections, "+first+" first", func(t *testing.T) {
				t.Parallel()
				s := testkit.Start(t, patient("DB_MAX_CONNS", connections)...)
				s.Product(t, "TEA-001", 1999, 1_000_000)
				alice := s.As(t, "alice")
				traffic := startTraffic(alice, 8)
				traffic.rounds(t, 2)
				orders := traffic.stop(t)
				changeTypes(t, s)
				if first == "reads" {
					reads := testkit.Together(8, func(int) testkit.Answer { return readLater(alice, "/v1/orders/"+orders[0]) })
					for _, a := range testkit.Receive(reads, 8) {
						require.Equal(t, http.StatusOK, a.Status, string(a.Body))
					}
				}
				traffic = startTraffic(alice, 8)
				traffic.rounds(t, 2)
				traffic.stop(t)
			})
		}
	}
}

func changeTypes(t testing.TB, s *testkit.Service) {
	t.Helper()
	for _, column := range []string{
		"orders ALTER COLUMN ship_name TYPE varchar(500)", "order_lines ALTER COLUMN name TYPE varchar(500)",
		"products ALTER COLUMN name TYPE varchar(500)", "payments ALTER COLUMN payment_method TYPE varchar(500)",
		"idempotency_keys ALTER COLUMN response_status TYPE bigint",
	} {
		migrateAs(t, s, `ALTER TABLE `+column)
	}
}

// readLater may be called by any goroutine.
func readLater(c *testkit.Caller, path string) testkit.Answer {
	a, err := c.Try(http.MethodGet, path, "")
	if err != nil {
		a.Body = []byte(err.Error())
	}
	return a
}
