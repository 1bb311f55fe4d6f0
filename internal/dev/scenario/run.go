package scenario

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/client/openapi"
)

// Scope is the instrumentation scope of the spans that a Run makes, and these are their attributes.
const (
	Scope        = "orders/scenario"
	AttrActor    = "actor"
	AttrRequest  = "request"  // as it was sent, without its credentials
	AttrResponse = "response" // as it was received
	AttrLane     = "lane"     // where a mark or a held lock belongs
	AttrMark     = "mark"     // true: a moment, not a span of time
)

// runLimit ends a run whatever happens. The longest takes half a minute, on a machine that has nothing else to do.
const runLimit = 2 * time.Minute

// Check is one thing that a scenario promises and has looked at.
type Check struct {
	Text string
	OK   bool
	Why  string // what was seen instead
}

// Listener is told of a Run while it happens, one call at a time.
type Listener interface {
	Say(who, text string) // what else happens; who is empty, or what it is about
	Check(c Check)
	Exchange(x Exchange)
	Crowd(all []Exchange) // of requests that were sent at once, when all have ended
}

// Run is one run of a Scenario. It is a testkit.TB, so that scenarios use the helpers of the tests: what fails there ends the
// run as a broken promise.
type Run struct {
	*Service

	Scenario Scenario
	Checks   []Check

	knobs    map[string]int
	listener Listener
	tracer   trace.Tracer
	suffix   string          // makes the keys of this run its own
	ctx      context.Context //nolint:containedctx // a run is a TB, which has a context
	cleanups []func()
	order    openapi.OrderID // what end goes on with

	mu        sync.Mutex
	exchanges []Exchange
	gathering bool         // exchanges are told together, later
	sent      atomic.Int32 // requests that have left since the gathering began
}

// Start runs a scenario up to the point where it may have to wait; End runs the rest. knobs come from Scenario.Set.
func Start(ctx context.Context, service *Service, s Scenario, knobs map[string]int, l Listener) *Run {
	r := &Run{
		Service: service, Scenario: s, knobs: knobs, listener: l, suffix: strings.ToLower(rand.Text()[:6]),
		tracer: service.Traces.Tracer(Scope),
	}
	r.do(ctx, s.run)
	return r
}

// End runs the rest, unless a promise is broken already.
func (r *Run) End(ctx context.Context) {
	if r.Scenario.end != nil && r.Held() {
		r.do(ctx, r.Scenario.end)
	}
}

// Held tells whether every promise has held so far.
func (r *Run) Held() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK })
}

// do calls a part of the scenario on a goroutine that FailNow can end.
func (r *Run) do(ctx context.Context, part func(*Run)) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	r.ctx = ctx
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		part(r)
	}()
	<-done
}

func (r *Run) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	r.cleanups = nil
}

// Helper implements testkit.TB.
func (*Run) Helper() {}

// Errorf implements testkit.TB.
func (r *Run) Errorf(format string, args ...any) {
	r.note(Check{Text: "the scenario runs to its end", Why: strings.TrimSpace(fmt.Sprintf(format, args...))})
}

// FailNow implements testkit.TB.
func (*Run) FailNow() { runtime.Goexit() }

// Cleanup implements testkit.TB.
func (r *Run) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// Context implements testkit.TB.
func (r *Run) Context() context.Context { return r.ctx }

func (r *Run) note(c Check) {
	r.Checks = append(r.Checks, c)
	r.listener.Check(c)
}

// must ends the run where something failed that is no promise but its precondition.
func (r *Run) must(err error) {
	if err != nil {
		r.Errorf("%v", err)
		r.FailNow()
	}
}

// must2 is must for a call with a result.
func must2[T any](value T, err error) func(*Run) T {
	return func(r *Run) T { r.must(err); return value }
}

// check notes whether a promise holds.
func (r *Run) check(ok bool, format string, args ...any) {
	c := Check{Text: fmt.Sprintf(format, args...), OK: ok}
	if !ok {
		c.Why = "it is not so"
	}
	r.note(c)
}

// equal notes whether something is as promised.
func equal[T comparable](r *Run, want, got T, format string, args ...any) {
	c := Check{Text: fmt.Sprintf(format, args...), OK: want == got}
	if !c.OK {
		c.Why = fmt.Sprintf("expected %+v, got %+v", want, got)
	}
	r.note(c)
}

// say tells what else happens.
func (r *Run) say(who, format string, args ...any) { r.listener.Say(who, fmt.Sprintf(format, args...)) }

// mark notes a moment in a lane, and tells of it.
func (r *Run) mark(lane, format string, args ...any) {
	_, span := r.tracer.Start(r.ctx, fmt.Sprintf(format, args...),
		trace.WithAttributes(attribute.String(AttrLane, lane), attribute.Bool(AttrMark, true)))
	span.End()
	r.say("", format, args...)
}

// key is a client key of this run.
func (r *Run) key(name string) string { return name + "-" + r.suffix }

// until waits for what has no signal to wait on. It tells every five seconds that it still does.
func (r *Run) until(what string, done func() bool) {
	tick, tell := time.NewTicker(20*time.Millisecond), time.NewTicker(5*time.Second)
	defer tick.Stop()
	defer tell.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-tell.C:
			r.say("", "… still waiting for %s", what)
		case <-r.ctx.Done():
			r.must(fmt.Errorf("waited in vain for %s: %w", what, context.Cause(r.ctx)))
		}
	}
}
