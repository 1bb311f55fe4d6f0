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

// Ensure no call of Wake is lost and that many calls are few notifications.
func TestWakerCoalesces(t *testing.T) {
	t.Parallel()
	pool := open(t)
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
