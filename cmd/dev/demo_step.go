package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

// step is a chapter while it is told: the requests that passed in it and the checks that it made.
type step struct {
	*demo
	number  int
	chapter chapter
	took    time.Duration
	checks  int
	broken  int

	mu      sync.Mutex
	passed  []passed
	crowded bool         // requests are shown together, later
	sent    atomic.Int32 // requests that have left, in the crowd
}

// check shows a tick, or counts a broken promise.
func (s *step) check(ok bool, format string, args ...any) {
	s.checks++
	if !ok {
		s.broken++
	}
	s.story.check(ok, fmt.Sprintf(format, args...))
}

func (s *step) note(x passed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = append(s.passed, x)
	if !s.crowded {
		s.story.show(x)
	}
}

// last is the latest exchange.
func (s *step) last() passed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.passed) == 0 {
		return passed{received: http.Header{}}
	}
	return s.passed[len(s.passed)-1]
}

// as is a client of one actor whose requests are shown.
func (s *step) as(actor string) *client.Client { return s.at(s.api.URL(), actor) }

// lossily is as, through the proxy that loses answers.
func (s *step) lossily(actor string) *client.Client { return s.at(s.proxy.URL(), actor) }

func (s *step) at(url, actor string) *client.Client {
	return s.client(url, actor, &wire{
		actor: actor, step: s, under: &http.Transport{DisableKeepAlives: true}, sent: &s.sent,
	})
}

// crowd makes n calls at once while a row that all of them need is held, and lets go of it when all have been sent and
// some wait for it: so they are really at work at the same time. Their requests are shown by showCrowd.
func (s *step) crowd(ctx context.Context, n int, row held, waiting int, call func(i int) error) ([]error, []passed, error) {
	calls := make([]func() error, n)
	for i := range calls {
		calls[i] = func() error { return call(i) }
	}
	return s.holding(ctx, row, func(made *made) error {
		made.start(calls...)
		return made.until(ctx, s, n, waiting)
	})
}

// race makes two calls, the first one first, and shows their requests: each waits for the held row, which is let go
// when both do.
func (s *step) race(ctx context.Context, row held, first, second func() error) (firstErr, secondErr, err error) {
	errs, all, err := s.holding(ctx, row, func(made *made) error {
		made.start(first)
		if err := made.until(ctx, s, 1, 1); err != nil {
			return err
		}
		made.start(second)
		return made.until(ctx, s, 2, 2)
	})
	for _, x := range all {
		s.story.show(x)
	}
	if err != nil {
		return nil, nil, err
	}
	return errs[0], errs[1], nil
}

// holding holds a row during begin, which starts calls, and waits for them all. It returns what passed.
func (s *step) holding(ctx context.Context, row held, begin func(*made) error) ([]error, []passed, error) {
	s.gather(true)
	defer s.gather(false)
	from := len(s.passed)
	s.sent.Store(0)
	release, err := s.hold(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	calls := &made{}
	err = errors.Join(begin(calls), release())
	calls.all.Wait()
	if err != nil {
		return nil, nil, err
	}
	errs := make([]error, len(calls.errs))
	for i, e := range calls.errs {
		errs[i] = *e
	}
	return errs, s.passed[from:], nil
}

// gather keeps requests from being shown one by one.
func (s *step) gather(on bool) { s.mu.Lock(); defer s.mu.Unlock(); s.crowded = on }

// made is calls that have been made.
type made struct {
	all   sync.WaitGroup
	errs  []*error
	ended atomic.Int32
}

func (m *made) start(calls ...func() error) {
	for _, call := range calls {
		result := new(error)
		m.errs = append(m.errs, result)
		m.all.Go(func() {
			*result = call()
			m.ended.Add(1)
		})
	}
}

// until waits until so many requests have been sent and so many statements wait for a lock, or every call has ended
// without waiting, which the checks will show.
func (m *made) until(ctx context.Context, s *step, sent, waiting int) error {
	return until(ctx, "requests that are at work at the same time", func() (bool, error) {
		if int(m.ended.Load()) == len(m.errs) {
			return true, nil
		}
		now, err := s.waiters(ctx)
		return int(s.sent.Load()) >= sent && now >= waiting, err
	})
}

// showCrowd prints the requests as one and the answers by kind.
func (s *step) showCrowd(all []passed) {
	if len(all) == 0 {
		return
	}
	one, keys := all[0], map[string]bool{}
	actors := map[string]bool{}
	for _, x := range all {
		keys[x.sent.Get("Idempotency-Key")], actors[x.actor] = true, true
	}
	if len(actors) > 1 {
		one.actor = fmt.Sprintf("%d actors", len(actors))
	}
	if len(keys) > 1 {
		one.sent = http.Header{"Idempotency-Key": {"one for each"}}
	}
	s.story.printf("%s", s.story.request(one, fmt.Sprintf("   %d times at once", len(all))))
	kinds := map[string]int{}
	for _, x := range all {
		kinds[kindOf(x)]++
	}
	for _, kind := range slices.Backward(slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[a], kinds[b]), strings.Compare(a, b))
	})) {
		s.story.line("", "← %d × %s", kinds[kind], kind)
	}
}

func kindOf(x passed) string {
	if x.err != nil {
		return "no answer"
	}
	return x.outcome() + strings.Join(named(x.received, "Idempotent-Replayed"), "")
}

func count(all []passed, is func(passed) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

func codeOf(body []byte, status int) openapi.ProblemCode {
	var p openapi.Problem
	if status < http.StatusBadRequest || json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Code
}

// until waits for what has no signal to wait on.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, context.Cause(ctx))
		}
	}
}
