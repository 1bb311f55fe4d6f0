package jobs

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/infra/outbox"
)

func startWaker(t *testing.T, pool *pgxpool.Pool) *outbox.Waker {
	t.Helper()
	w := outbox.NewWaker(pool, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// Ensure a woken worker fetches the new job, long before it would look by itself.
func TestWakerWakesWorkers(t *testing.T) {
	t.Parallel()
	pool := open(t, 0)
	runs, _ := startWorkerPolling(t, pool, 1, 10*time.Minute)
	w := startWaker(t, pool)
	// The worker looks once when it starts and listens some time before that or after: only what is inserted after its
	// first run is sure to wait for a notification.
	insert(t, pool)
	require.Eventually(t, func() bool {
		w.Wake()
		select {
		case r := <-runs:
			r.end <- nil
			return true
		default:
			return false
		}
	}, patience, 50*time.Millisecond)
	for range 3 {
		insert(t, pool)
		w.Wake()
		next(t, runs, "the run of a job that a worker was told of").end <- nil
	}
}
