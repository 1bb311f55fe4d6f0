package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// wakeEvery is the least time between two notifications of one process. Each is for all jobs before it.
	wakeEvery = 10 * time.Millisecond
	// wakeTimeout bounds one notification, the wait for a connection included.
	wakeTimeout = time.Second
)

// notify wakes the workers as River's own clients do. It has nothing to make durable, so its commit does not wait for
// the disk: with a notification, a commit holds a lock that other such commits wait for.
const notify = `SELECT set_config('synchronous_commit', 'off', true),
	pg_notify(concat(current_schema(), '.river_insert'), '{"queue": "default"}')`

// Waker tells workers that listen that there are new jobs. It does so apart from the transactions that enqueue them: a
// NOTIFY in each of those would let only one of them commit at a time. A notification that is lost costs the time until a
// worker's next poll.
type Waker struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	due  chan struct{}
}

// NewWaker makes a Waker, which works while Run does.
func NewWaker(pool *pgxpool.Pool, log *slog.Logger) *Waker {
	return &Waker{pool: pool, log: log, due: make(chan struct{}, 1)}
}

// Wake asks for a notification and returns at once. Call it after the commit: before, a worker would find nothing.
func (w *Waker) Wake() {
	select {
	case w.due <- struct{}{}:
	default: // one is to be sent already
	}
}

// Run sends notifications until ctx ends.
func (w *Waker) Run(ctx context.Context) {
	pause := time.NewTicker(wakeEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.due:
		}
		w.send(ctx)
		pause.Reset(wakeEvery)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (w *Waker) send(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	if _, err := w.pool.Exec(limited, notify); err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "notification of new jobs failed: they wait for the next poll", "error", err)
	}
}
