package postgres

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/dev/postgres/pgtest"
)

// never is a deadline that no test reaches, always one that is over.
func never() time.Time { return time.Now().Add(time.Hour) }

func always() time.Time { return time.Now().Add(-time.Second) }

func keyOf(name string) app.KeyScope {
	return app.KeyScope{Tenant: "t", Actor: "a", Operation: "o", Key: name}
}

// users is how many work or wait under a key.
func (g gate) users(k app.KeyScope) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.keys[k]; t != nil {
		return t.users
	}
	return 0
}

// requireEmpty checks that the gate has no entries left: a key that is not in use takes no memory.
func requireEmpty(t *testing.T, g gate) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Empty(t, g.keys)
}

// receive waits, within pgtest.Wait, for a value or for the end of the channel.
func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(pgtest.Wait):
		require.FailNow(t, "nothing was received in time")
	}
	return value
}

// awaitUsers waits until n work or wait under a key.
func awaitUsers(t *testing.T, g gate, k app.KeyScope, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return g.users(k) == n }, time.Minute, time.Millisecond)
}

// Ensure of many that want one key exactly one at a time has it, each has it once, and nothing is left behind.
func TestGateLetsOneInAtATime(t *testing.T) {
	t.Parallel()
	const keys, each = 3, 40
	g := newGate()
	var inside [keys]atomic.Int32
	var turns atomic.Int32
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range keys * each {
		all.Go(func() {
			<-start
			at, err := g.enter(t.Context(), keyOf(strconv.Itoa(i%keys)), never())
			if err != nil {
				return
			}
			if inside[i%keys].Add(1) == 1 {
				turns.Add(1)
			}
			inside[i%keys].Add(-1)
			at.leave(false)
		})
	}
	close(start)
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	receive(t, done)
	require.EqualValues(t, keys*each, turns.Load(), "turns that were had alone")
	requireEmpty(t, g)
}

// Ensure a key does not delay requests with another key: no part of the scope is ignored.
func TestGateKeepsScopesApart(t *testing.T) {
	t.Parallel()
	g := newGate()
	base := keyOf("k")
	scopes := []app.KeyScope{base, base, base, base, base}
	scopes[1].Tenant, scopes[2].Actor, scopes[3].Operation, scopes[4].Key = "T", "A", "O", "K"
	for _, scope := range scopes {
		at, err := g.enter(t.Context(), scope, always())
		require.NoError(t, err)
		require.False(t, at.waited)
		defer at.leave(false)
	}
}

// Ensure a wait that runs out says so and gives up its place.
func TestGateBoundsTheWait(t *testing.T) {
	t.Parallel()
	g := newGate()
	at, err := g.enter(t.Context(), keyOf("k"), never())
	require.NoError(t, err)
	late, err := g.enter(t.Context(), keyOf("k"), always())
	require.ErrorIs(t, err, app.ErrKeyInProgress)
	require.True(t, late.waited)
	late.leave(false)
	require.Equal(t, 1, g.users(keyOf("k")))
	at.leave(false)
	requireEmpty(t, g)
}

// Ensure a free key is had even where there is no time to wait, every time.
func TestGateLetsInWithoutAWait(t *testing.T) {
	t.Parallel()
	g := newGate()
	for range 1000 {
		at, err := g.enter(t.Context(), keyOf("k"), always())
		require.NoError(t, err)
		at.leave(false)
	}
	requireEmpty(t, g)
}

// Ensure a waiting request whose client goes away gives up its place and takes no turn, and that one whose own time is
// up is told to try again.
func TestGateForgetsWhoeverLeaves(t *testing.T) {
	t.Parallel()
	g := newGate()
	at, err := g.enter(t.Context(), keyOf("k"), never())
	require.NoError(t, err)
	ctx, gone := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		at, err := g.enter(ctx, keyOf("k"), never())
		at.leave(false)
		left <- err
	}()
	awaitUsers(t, g, keyOf("k"), 2)
	gone()
	require.ErrorIs(t, receive(t, left), context.Canceled)
	require.Equal(t, 1, g.users(keyOf("k")))

	late, cancel := context.WithDeadline(t.Context(), always())
	defer cancel()
	gaveUp, err := g.enter(late, keyOf("k"), never())
	require.ErrorIs(t, err, app.ErrTryAgain)
	gaveUp.leave(false)
	at.leave(false)
	requireEmpty(t, g)
}

// Ensure a turn passes from one to the next, and the last one clears up.
func TestGatePassesTheTurnOn(t *testing.T) {
	t.Parallel()
	g := newGate()
	at, err := g.enter(t.Context(), keyOf("k"), never())
	require.NoError(t, err)
	next := make(chan place, 1)
	go func() {
		at, _ := g.enter(t.Context(), keyOf("k"), never())
		next <- at
	}()
	awaitUsers(t, g, keyOf("k"), 2)
	select {
	case <-next:
		require.Fail(t, "two at once")
	default:
	}
	at.leave(false)
	after := receive(t, next)
	require.False(t, after.done)
	after.leave(false)
	requireEmpty(t, g)
}

// Ensure all that wait go on at once when a request under the key has been answered: none waits for another one.
func TestGateOpensOnceARequestIsAnswered(t *testing.T) {
	t.Parallel()
	const waiting = 100
	g := newGate()
	at, err := g.enter(t.Context(), keyOf("k"), never())
	require.NoError(t, err)
	through := make(chan place, waiting)
	for range waiting {
		go func() {
			at, _ := g.enter(t.Context(), keyOf("k"), never())
			through <- at
		}()
	}
	awaitUsers(t, g, keyOf("k"), waiting+1)
	at.leave(true)
	all := make([]place, waiting)
	for i := range all { // none has left when the last one comes through
		all[i] = receive(t, through)
	}
	for _, at := range all {
		at.leave(true)
	}
	requireEmpty(t, g)
}

// Ensure the wait for a probe is bounded like every other part of a duplicate's wait.
func TestProbesAreNotWaitedForForever(t *testing.T) {
	t.Parallel()
	s := &Store{probes: make(chan struct{})} // none is free, ever
	err := s.bounded(t.Context(), always(), nil)
	require.ErrorIs(t, err, app.ErrKeyInProgress)
	late, cancel := context.WithDeadline(t.Context(), always())
	defer cancel()
	require.ErrorIs(t, s.bounded(late, never(), nil), app.ErrTryAgain)
}
