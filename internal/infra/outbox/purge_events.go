package outbox

import (
	"context"
	"time"
)

// purgeEvents removes expired ids of provider events, within the bounds of a run and until the worker stops or the job's
// time is up. What it does not reach is for the next run.
func (w *purgeKeys) purgeEvents(ctx context.Context) error {
	var from time.Time
	removed := 0
	for range w.config.Batches {
		var n int
		var err error
		n, from, err = w.store.PurgeEvents(ctx, from, w.config.Batch)
		removed += n
		if err != nil && ctx.Err() == nil {
			return err
		}
		if n < w.config.Batch {
			break
		}
		select {
		case <-w.stopping:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(w.config.Pause):
		}
	}
	w.log.InfoContext(ctx, "purged provider events", "removed", removed)
	return nil
}
