package postgres

import (
	"context"
	"sync"
	"time"

	"example.com/orders/internal/app"
)

// gate lets only one request per client key run in this process. Duplicates wait in memory and hold no connection, so
// they cannot exhaust the pool. Once the first request has its response, all duplicates continue at once, because each
// will find the record. The gate is only an optimisation; correctness comes from the unique index.
type gate struct {
	mu   *sync.Mutex
	keys map[app.KeyScope]*turn
}

type turn struct {
	taken chan struct{} // holds one token while a request runs under the key
	done  chan struct{} // closed once a request under the key has been answered
	users int           // the requests that run or wait; the last one deletes the turn
}

// place is the state of a request after enter. The caller must call leave.
type place struct {
	waited bool
	done   bool // a request under the key has been answered
	leave  func(answered bool)
}

func newGate() gate { return gate{mu: new(sync.Mutex), keys: make(map[app.KeyScope]*turn)} }

// enter waits for the turn of a key, or until the request that has the turn is answered. After the deadline it returns
// app.ErrKeyInProgress.
func (g gate) enter(ctx context.Context, scope app.KeyScope, deadline time.Time) (place, error) {
	t := g.join(scope)
	worker := place{leave: func(answered bool) { g.finish(scope, t, answered) }}
	select {
	case t.taken <- struct{}{}:
		return worker, nil
	default:
	}
	worker.waited = true
	other := place{waited: true, leave: func(bool) { g.quit(scope, t) }}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-t.done:
		other.done = true
		return other, nil
	case t.taken <- struct{}{}:
		return worker, nil
	case <-timer.C:
		return other, app.ErrKeyInProgress
	case <-ctx.Done():
		return other, classify(ctx.Err())
	}
}

// finish releases the turn, or after a response releases all waiting requests.
func (g gate) finish(scope app.KeyScope, t *turn, answered bool) {
	g.mu.Lock()
	if answered {
		select {
		case <-t.done:
		default:
			close(t.done)
		}
	}
	g.mu.Unlock()
	<-t.taken
	g.quit(scope, t)
}

func (g gate) join(scope app.KeyScope) *turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.keys[scope]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1), done: make(chan struct{})}
		g.keys[scope] = t
	}
	t.users++
	return t
}

func (g gate) quit(scope app.KeyScope, t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(g.keys, scope)
	}
}
