package outbox

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

func startWaker(t *testing.T, pool *pgxpool.Pool) *Waker {
	t.Helper()
	w := NewWaker(pool, slog.New(slog.DiscardHandler))
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

// Ensure no call of Wake is lost and that many calls are few notifications.
func TestWakerCoalesces(t *testing.T) {
	t.Parallel()
	pool := open(t, 0)
	listener, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close(context.Background()) })
	_, err = listener.Exec(t.Context(), `LISTEN "public.river_insert"`)
	require.NoError(t, err)
	w := startWaker(t, pool)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 1000 {
		w.Wake()
	}
	_, err = listener.WaitForNotification(ctx)
	require.NoError(t, err)
	w.Wake() // whatever has been sent by now, this one is for a job after it
	_, err = listener.WaitForNotification(ctx)
	require.NoError(t, err)
	_, err = listener.Exec(t.Context(), `UNLISTEN *`)
	require.NoError(t, err)
	more := 0
	for range 1000 {
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := listener.WaitForNotification(short)
		cancel()
		if err != nil {
			break
		}
		more++
	}
	require.LessOrEqual(t, more, 1, "notifications beyond the first and the last")
}
