package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"example.com/orders/internal/infra/postgres"
)

// PurgeConfig bounds purge-idempotency-keys.
type PurgeConfig struct {
	Interval time.Duration // between two runs
	Batch    int           // records that one transaction removes
	Batches  int           // transactions of one run
	Pause    time.Duration // between two transactions, so that requests are not slowed down
}

type purgeKeysArgs struct{}

// Kind implements river.JobArgs.
func (purgeKeysArgs) Kind() string { return "purge-idempotency-keys" }

// countTimeout bounds the count at the end of a purge.
const countTimeout = 2 * time.Second

// KeyStore is the store that the purge removes records from.
type KeyStore interface {
	PurgeKeys(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error)
	PurgeEvents(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error)
	ExpiredKeys(ctx context.Context) (postgres.KeyBacklog, error)
}

type purgeKeys struct {
	river.WorkerDefaults[purgeKeysArgs]
	store    KeyStore
	config   PurgeConfig
	stopping <-chan struct{}
	observer Observer
	log      *slog.Logger
}

// Work implements river.Worker. A run is bounded by its batches and the job timeout; the next run removes the rest. A
// run that a shutdown interrupts goes on after the restart. Otherwise workers that restart often would purge only one
// batch per interval.
func (w *purgeKeys) Work(ctx context.Context, _ *river.Job[purgeKeysArgs]) error {
	removed, cut, err := w.purge(ctx, w.store.PurgeKeys)
	w.observer.Purged(context.WithoutCancel(ctx), int64(removed), err != nil)
	if err != nil {
		return err
	}
	if cut {
		return river.JobSnooze(0)
	}
	if err := w.purgeEvents(ctx); err != nil {
		w.observer.Purged(context.WithoutCancel(ctx), 0, true)
		return err
	}
	// The backlog is counted even after the job timeout, because then operators need it most.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	left, err := w.store.ExpiredKeys(ctx)
	if err != nil {
		return err
	}
	w.log.InfoContext(ctx, "purged idempotency keys",
		"removed", removed, "remaining", left.Expired, "oldest_expired_age", left.Oldest)
	return nil
}

// purgeEvents removes expired ids of provider events, within the bounds of a run. The next run removes the rest, also
// after a shutdown.
func (w *purgeKeys) purgeEvents(ctx context.Context) error {
	removed, cut, err := w.purge(ctx, w.store.PurgeEvents)
	if err != nil || cut {
		return err
	}
	w.log.InfoContext(ctx, "purged provider events", "removed", removed)
	return nil
}

// removeBatch removes at most batch records that expired at or after from. It returns their number and where the next
// batch starts.
type removeBatch func(ctx context.Context, from time.Time, batch int) (removed int, next time.Time, err error)

// purge removes batch after batch. cut is true if a shutdown interrupted the run.
func (w *purgeKeys) purge(ctx context.Context, remove removeBatch) (removed int, cut bool, err error) {
	var from time.Time
	for range w.config.Batches {
		var n int
		n, from, err = remove(ctx, from, w.config.Batch)
		removed += n
		switch {
		case err != nil && ctx.Err() == nil:
			return removed, false, err
		case err == nil && n < w.config.Batch:
			return removed, false, nil // none left, or the rest are locked by other transactions
		}
		select {
		case <-w.stopping:
			return removed, true, nil
		case <-ctx.Done():
			return removed, w.stops(), nil
		case <-time.After(w.config.Pause):
		}
	}
	return removed, false, nil
}

// stops reports whether the worker is shutting down; otherwise the job timeout ended the run.
func (w *purgeKeys) stops() bool {
	select {
	case <-w.stopping:
		return true
	default:
		return false
	}
}
