package postgres

import (
	"context"
	"sync"
	"time"

	"example.com/orders/internal/app"
)

// gate lets one request of this process at a time work under a client key. The others wait here, in memory: a waiting
// duplicate holds no connection, so it cannot keep others from theirs, whatever the size of the pool. It is an
// economy only. What keeps two requests apart, in this process or another, is the unique index.
type gate struct {
	mu   *sync.Mutex
	keys map[app.KeyScope]*turn
}

type turn struct {
	taken chan struct{} // holds one token while somebody works under the key
	users int           // those who work or wait; the last one removes the turn
}

func newGate() gate { return gate{mu: new(sync.Mutex), keys: make(map[app.KeyScope]*turn)} }

// enter waits for the key until the deadline, and then returns app.ErrKeyInProgress. leave must follow a nil error.
func (g gate) enter(ctx context.Context, scope app.KeyScope, deadline time.Time) (leave func(), waited bool, err error) {
	t := g.join(scope)
	leave = func() { <-t.taken; g.quit(scope, t) }
	select {
	case t.taken <- struct{}{}:
		return leave, false, nil
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case t.taken <- struct{}{}:
		return leave, true, nil
	case <-timer.C:
		err = app.ErrKeyInProgress
	case <-ctx.Done():
		err = classify(ctx.Err())
	}
	g.quit(scope, t)
	return nil, true, err
}

func (g gate) join(scope app.KeyScope) *turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.keys[scope]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
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
