package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

func (s saving) look() app.Look {
	s.t.Helper()
	seen, err := NewReader(s.Store).Look(s.t.Context(), app.OrderRef{Tenant: savedTenant, OrderID: s.orderID})
	require.NoError(s.t, err)
	return seen
}

// Ensure a transaction on what was seen before commits only where neither order nor payment was changed since. Where one
// was, it runs again on what is there now.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestAsSeenComparesBothVersions(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{"nothing", "order", "payment"} {
		s := newSaving(t)
		seen, runs := s.look(), 0
		for _, a := range s.aggregates() {
			if a.name == changed {
				l := s.read(a)
				l.change(1)
				s.in(l.save)
			}
		}
		var order *domain.Order
		var payment *domain.Payment
		require.NoError(t, s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) (err error) {
			runs++
			order, payment, err = tx.Orders().AsSeen(ctx, seen)
			return err
		}), changed)
		now := s.look()
		require.Equal(t, now.Order, order.State(), changed)
		require.Equal(t, now.Payment.Version, payment.State().Version, changed)
		if changed == "nothing" {
			require.Equal(t, 1, runs)
			continue
		}
		require.Equal(t, 2, runs, changed)
		require.Equal(t, []string{stale}, s.seen.reasons, changed)
	}
}

// Ensure AsSeen locks both until the transaction ends, as a load does.
func TestAsSeenLocksBoth(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates()[:2] {
		seen, loaded := s.look(), make(chan error, 1)
		s.in(func(ctx context.Context, tx app.Tx) error {
			_, _, err := tx.Orders().AsSeen(ctx, seen)
			require.NoError(t, err)
			_, err = tx.Orders().Customer(ctx, savedTenant, s.orderID) // the read sends the locks
			require.NoError(t, err)
			go func() {
				loaded <- s.once(ctx, func(*Tx) {}, func(ctx context.Context, tx app.Tx) error {
					_, err := a.load(ctx, tx)
					return err
				})
			}()
			s.awaitLockWait()
			return nil
		})
		require.NoError(t, receive(t, loaded), a.name)
	}
}

// Ensure AsSeen locks the order before the payment, as every other transaction does: in the other order two transactions could
// wait for each other.
func TestAsSeenLocksTheOrderFirst(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	seen, ended := s.look(), make(chan error, 1)
	holder, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer holder.Rollback(t.Context()) //nolint:errcheck // it has changed nothing
	_, err = holder.Exec(t.Context(), `SELECT FROM orders FOR UPDATE`)
	require.NoError(t, err)
	go func() {
		ended <- s.InTx(t.Context(), func(ctx context.Context, tx app.Tx) error {
			_, _, err := tx.Orders().AsSeen(ctx, seen)
			return err
		})
	}()
	s.awaitLockWait()
	_, err = holder.Exec(t.Context(), `SELECT FROM payments FOR UPDATE NOWAIT`)
	require.NoError(t, err, "the payment is locked while the order is waited for")
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, receive(t, ended))
}

// Ensure AsSeen compares the versions as they are after it has waited for a lock: a cancellation that holds the order when
// the outcome of a charge arrives is seen, although the charge saves only the payment.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestAsSeenComparesWhatItHasWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	for _, a := range s.aggregates()[:2] {
		seen, ended, runs := s.look(), make(chan error, 1), 0
		s.in(func(ctx context.Context, tx app.Tx) error {
			held, err := a.load(ctx, tx)
			require.NoError(t, err)
			go func() {
				ended <- s.InTx(ctx, func(ctx context.Context, tx app.Tx) error {
					runs++
					_, _, err := tx.Orders().AsSeen(ctx, seen)
					return err
				})
			}()
			s.awaitLockWait()
			held.change(1)
			return held.save(ctx, tx)
		})
		require.NoError(t, receive(t, ended), a.name)
		require.Equal(t, 2, runs, "%s: committed on a version that was no longer there", a.name)
	}
}

// Ensure the time of such a transaction goes on from the database's time that was seen, and stays the same in it.
func TestAsSeenGoesOnFromTheTimeThatWasSeen(t *testing.T) {
	t.Parallel()
	s := newSaving(t)
	seen := s.look()
	seen.ReadAt = seen.ReadAt.Add(-time.Hour)
	s.in(func(ctx context.Context, tx app.Tx) error {
		_, _, err := tx.Orders().AsSeen(ctx, seen)
		require.NoError(t, err)
		at := tx.Now()
		require.GreaterOrEqual(t, at.Sub(seen.Now), time.Hour)
		_, err = tx.Orders().Customer(ctx, savedTenant, s.orderID)
		require.NoError(t, err)
		require.Equal(t, at, tx.Now())
		return nil
	})
}
