package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// wakeEvery is the minimum time between two notifications of one process. One notification covers all jobs before
	// it.
	wakeEvery = 10 * time.Millisecond
	// wakeTimeout bounds one notification, the wait for a connection included.
	wakeTimeout = time.Second
)

// notify wakes the workers as River's own clients do. It uses synchronous_commit = off: a commit with a notification
// holds a lock that all such commits wait for, and nothing here needs to be durable.
const notify = `SELECT set_config('synchronous_commit', 'off', true),
	pg_notify(concat(current_schema(), '.river_insert'), '{"queue": "default"}')`

// Waker notifies listening workers of new jobs. It does so outside the transactions that enqueue them, because
// transactions with a NOTIFY commit one at a time. A lost notification only delays the jobs until the worker's next
// poll.
type Waker struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	due  chan struct{}
}

// NewWaker makes a Waker. It sends notifications while Run runs.
func NewWaker(pool *pgxpool.Pool, log *slog.Logger) *Waker {
	return &Waker{pool: pool, log: log, due: make(chan struct{}, 1)}
}

// Wake requests a notification and returns at once. Call it after the commit; before it, a worker would not see the
// job.
func (w *Waker) Wake() {
	select {
	case w.due <- struct{}{}:
	default: // a notification is already requested
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
