package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// threeBatches is a store that has two full batches of expired keys and a part of a third.
type threeBatches struct {
	noKeys

	from []time.Time // where each batch began
}

func (s *threeBatches) PurgeKeys(_ context.Context, from time.Time, batch int) (int, time.Time, error) {
	s.from = append(s.from, from)
	if len(s.from) == 3 {
		return batch - 1, from, nil
	}
	return batch, time.Unix(int64(len(s.from)), 0), nil
}

// Ensure each batch of a run begins where the one before it ended.
func TestPurgeTellsEachBatchWhereToBegin(t *testing.T) {
	t.Parallel()
	store := &threeBatches{}
	w := &purgeKeys{
		store: store, config: PurgeConfig{Batch: 10, Batches: 10},
		observer: lateResults{}, log: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, w.Work(t.Context(), nil))
	require.Equal(t, []time.Time{{}, time.Unix(1, 0), time.Unix(2, 0)}, store.from)
}
