package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/domain"
	"example.com/orders/migrations"
)

const (
	savedTenant = "default"
	savedSKU    = "TEA-001"
)

// retries is an observer that remembers why transactions ran again.
type retries struct{ reasons []string }

func (r *retries) KeyWait(context.Context, string, time.Duration) {}
func (r *retries) TransactionRetry(_ context.Context, reason string) {
	r.reasons = append(r.reasons, reason)
}

// saving is a store on a database with one aggregate of each kind.
type saving struct {
	*Store
	t       *testing.T
	seen    *retries
	orderID domain.OrderID
}

func newSaving(t *testing.T) saving {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB)))
	settings := Settings{LockTimeout: time.Minute, AcquireTimeout: time.Minute, KeyWait: time.Minute}
	seen := &retries{}
	s := saving{NewStore(pool, func(*Session) app.Outbox { return nil }, settings, seen, noop.NewTracerProvider()), t, seen, uuid.Must(uuid.NewV7())}
	s.in(s.add)
	return s
}

// in runs one transaction, once.
func (s saving) in(fn func(ctx context.Context, tx app.Tx) error) {
	s.t.Helper()
	require.NoError(s.t, s.once(s.t.Context(), func(*Tx) {}, fn))
}

func (s saving) add(ctx context.Context, tx app.Tx) error {
	at := time.Now().UTC().Truncate(time.Microsecond)
	details := domain.ProductDetails{Name: "Sencha", Price: domain.Money{Amount: 1999, Currency: "EUR"}, Active: true}
	product := domain.NewProduct(savedTenant, savedSKU, details, at)
	stock := domain.NewStock(savedTenant, savedSKU, at)
	order, err := domain.PlaceOrder(domain.NewOrder{
		Tenant: savedTenant, ID: s.orderID, Customer: "alice", Currency: "EUR", Items: []domain.Item{{SKU: savedSKU, Quantity: 2}}, At: at,
	}, map[string]domain.ProductState{savedSKU: product.State()})
	if err != nil {
		return err
	}
	for _, add := range []func() error{
		func() error { return tx.Products().Add(ctx, product) },
		func() error { return tx.Stock().Add(ctx, stock) },
		func() error { return tx.Orders().Add(ctx, order) },
		func() error { return tx.Payments().Add(ctx, domain.NewPayment(order.State(), "pm_card_visa")) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// aggregate is one kind of aggregate: how it is loaded, and what a loaded one can do.
type aggregate struct {
	name string
	load func(ctx context.Context, tx app.Tx) (loaded, error)
}

// loaded is an aggregate as it was loaded once.
type loaded struct {
	change  func(n int)                                // makes a change that tells n
	save    func(ctx context.Context, tx app.Tx) error // stores it
	state   func() any                                 // what it would be read as
	version func() int64
}

func (s saving) aggregates() []aggregate {
	later := func(n int) time.Time { return time.Date(2026, 11, 29, 12, n, 0, 0, time.UTC) }
	return []aggregate{
		{"order", func(ctx context.Context, tx app.Tx) (loaded, error) {
			o, err := tx.Orders().ForUpdate(ctx, savedTenant, s.orderID)
			return loaded{
				change:  func(n int) { _ = o.ChangeAddress(domain.Address{Line1: fmt.Sprint(n)}, later(n)) },
				save:    func(ctx context.Context, tx app.Tx) error { return tx.Orders().Save(ctx, o) },
				state:   func() any { return o.State() },
				version: func() int64 { return o.State().Version },
			}, err
		}},
		{"payment", func(ctx context.Context, tx app.Tx) (loaded, error) {
			p, err := tx.Payments().ForUpdate(ctx, savedTenant, s.orderID)
			return loaded{
				change: func(n int) { // the first change is the charge, each other one a refund: they are saved with the payment
					if p.Succeed("pi_1", later(n)) != nil {
						_ = p.RequestRefund(domain.Refund{ID: uuid.New(), Amount: domain.Money{Amount: int64(n), Currency: "EUR"}, CreatedAt: later(n)})
					}
				},
				save:    func(ctx context.Context, tx app.Tx) error { return tx.Payments().Save(ctx, p) },
				state:   func() any { return p.State() },
				version: func() int64 { return p.State().Version },
			}, err
		}},
		{"product", func(ctx context.Context, tx app.Tx) (loaded, error) {
			p, err := tx.Products().ForUpdate(ctx, savedTenant, savedSKU)
			return loaded{
				change: func(n int) {
					p.Edit(domain.ProductDetails{Name: fmt.Sprint(n), Price: domain.Money{Amount: int64(n), Currency: "EUR"}}, later(n))
				},
				save:    func(ctx context.Context, tx app.Tx) error { return tx.Products().Save(ctx, p) },
				state:   func() any { return p.State() },
				version: func() int64 { return p.State().Version },
			}, err
		}},
		{"stock", func(ctx context.Context, tx app.Tx) (loaded, error) {
			all, err := tx.Stock().ForUpdate(ctx, savedTenant, []string{savedSKU})
			k := all[savedSKU]
			return loaded{
				change:  func(n int) { _ = k.Adjust(int64(n), later(n)) },
				save:    func(ctx context.Context, tx app.Tx) error { return tx.Stock().Save(ctx, []*domain.Stock{k}) },
				state:   func() any { return k.State() },
				version: func() int64 { return k.State().Version },
			}, err
		}},
	}
}

// read loads an aggregate in a transaction of its own.
func (s saving) read(a aggregate) (l loaded) {
	s.t.Helper()
	s.in(func(ctx context.Context, tx app.Tx) (err error) { l, err = a.load(ctx, tx); return err })
	return l
}

// Ensure every save compares the version: of two loads of one version the second save is refused as stale, changes
// nothing of what the first one stored, and advances no version.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestEverySaveComparesTheVersion(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates() {
		first, second := s.read(a), s.read(a)
		require.EqualValues(t, 1, first.version(), a.name)
		first.change(1)
		s.in(first.save)
		require.EqualValues(t, 2, first.version(), "%s: the saved aggregate does not know its version", a.name)
		stored := s.read(a).state()
		require.Equal(t, first.state(), stored, a.name)

		second.change(2)
		err := s.once(t.Context(), func(*Tx) {}, second.save)
		require.ErrorIs(t, err, app.ErrStale, a.name)
		require.EqualValues(t, 1, second.version(), a.name)
		require.Equal(t, stored, s.read(a).state(), "%s: a stale save changed something", a.name)

		first.change(3)
		s.in(first.save)
		require.Equal(t, first.state(), s.read(a).state(), a.name)
		require.EqualValues(t, 3, first.version(), a.name)
	}
}

// Ensure a save within the transaction that another save was made in is compared with what that one left.
func TestSavesInOneTransactionAreCompared(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates() {
		err := s.once(t.Context(), func(*Tx) {}, func(ctx context.Context, tx app.Tx) error {
			first, err := a.load(ctx, tx)
			require.NoError(t, err)
			second, err := a.load(ctx, tx)
			require.NoError(t, err)
			first.change(1)
			second.change(2)
			require.NoError(t, first.save(ctx, tx))
			return second.save(ctx, tx)
		})
		require.ErrorIs(t, err, app.ErrStale, a.name)
		require.EqualValues(t, 1, s.read(a).version(), "%s: the transaction of a stale save was committed", a.name)
	}
}

// Ensure one stale stock of several fails them all.
func TestOneStaleStockFailsAll(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	s.in(func(ctx context.Context, tx app.Tx) error {
		at := time.Now()
		details := domain.ProductDetails{Name: "Mug", Price: domain.Money{Amount: 1, Currency: "EUR"}}
		if err := tx.Products().Add(ctx, domain.NewProduct(savedTenant, "MUG-001", details, at)); err != nil {
			return err
		}
		return tx.Stock().Add(ctx, domain.NewStock(savedTenant, "MUG-001", at))
	})
	err := s.once(t.Context(), func(*Tx) {}, func(ctx context.Context, tx app.Tx) error {
		all, err := tx.Stock().ForUpdate(ctx, savedTenant, []string{"MUG-001", savedSKU})
		require.NoError(t, err)
		require.NoError(t, all["MUG-001"].Adjust(5, time.Now()))
		stale := all[savedSKU].State()
		stale.Version++
		return tx.Stock().Save(ctx, []*domain.Stock{all["MUG-001"], domain.RestoreStock(stale)})
	})
	require.ErrorIs(t, err, app.ErrStale)
	s.in(func(ctx context.Context, tx app.Tx) error {
		all, err := tx.Stock().ForUpdate(ctx, savedTenant, []string{"MUG-001"})
		require.Zero(t, all["MUG-001"].State().OnHand)
		return err
	})
}

// Ensure a transaction whose save was stale runs again, so that an internal writer reloads and goes on; and that it
// gives up in bounds, with nothing applied.
func TestStaleSavesRunAgain(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates() {
		s.seen.reasons = nil
		outdated, runs := s.read(a), 0
		other := s.read(a)
		other.change(1)
		s.in(other.save)
		require.NoError(t, s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) error {
			if runs++; runs == 1 {
				outdated.change(2)
				return outdated.save(ctx, tx)
			}
			l, err := a.load(ctx, tx)
			require.NoError(t, err)
			l.change(2)
			return l.save(ctx, tx)
		}), a.name)
		require.Equal(t, 2, runs, a.name)
		require.Equal(t, []string{stale}, s.seen.reasons, a.name)
		require.EqualValues(t, 3, s.read(a).version(), a.name)

		runs = 0
		err := s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) error { runs++; return outdated.save(ctx, tx) })
		require.ErrorIs(t, err, app.ErrTryAgain, a.name)
		require.Equal(t, maxTries, runs, a.name)
		require.EqualValues(t, 3, s.read(a).version(), a.name)
	}
}

// Ensure a load for a change waits for the transaction that loaded before, and then sees its result.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
func TestLoadsForAChangeLockTheRow(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates() {
		loadedFirst, second := make(chan struct{}), make(chan int64, 1)
		s.in(func(ctx context.Context, tx app.Tx) error {
			first, err := a.load(ctx, tx)
			require.NoError(t, err)
			go func() {
				close(loadedFirst)
				version := int64(0)
				_ = s.once(ctx, func(*Tx) {}, func(ctx context.Context, tx app.Tx) error {
					l, err := a.load(ctx, tx)
					version = l.version()
					return err
				})
				second <- version
			}()
			receive(t, loadedFirst)
			s.awaitLockWait()
			first.change(1)
			return first.save(ctx, tx)
		})
		require.EqualValues(t, 2, receive(t, second), "%s: loaded before the first one had ended", a.name)
	}
}

// awaitLockWait waits until a session of this database waits for a lock.
func (s saving) awaitLockWait() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var waiting int
		err := s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting > 0
	}, time.Minute, 10*time.Millisecond, "no session waits for a lock")
}
