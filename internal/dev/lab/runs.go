package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
	"example.com/orders/internal/dev/stack"
)

const (
	// keptRuns is how many runs can be looked at.
	keptRuns = 20
	// maxSpans bounds what is kept of one run.
	maxSpans = 20_000
	// lookWait bounds a look at the jobs.
	lookWait = 10 * time.Second
)

var errBusy = errors.New("another run is under way")

// runs is the runs of a Lab, and the service that they run on.
type runs struct {
	options stack.ThrowawayOptions

	mu     sync.Mutex
	all    []*run
	count  int
	cancel context.CancelFunc // of the run that is under way
	done   chan struct{}      // closed when it is over

	// Used by the run that is under way only.
	service *scenario.Service
	stop    func() error
	err     error // of services that were stopped
}

func newRuns(options stack.ThrowawayOptions) *runs {
	done := make(chan struct{})
	close(done)
	l := &runs{cancel: func() {}, done: done, stop: func() error { return nil }}
	options.Spans, options.Tap = l.report, newTap(l.report)
	l.options = options
	return l
}

// start starts a run and returns its id.
func (l *runs) start(ctx context.Context, s scenario.Scenario, knobs map[string]int) (id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
	default:
		return "", errBusy
	}
	l.count++
	r := &run{id: strconv.Itoa(l.count), scenario: s.ID, began: time.Now(), state: running, byID: map[string]int{}}
	l.all = append(l.all, r)
	l.all = l.all[max(0, len(l.all)-keptRuns):]
	ctx, l.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	l.done = done
	go func() {
		defer close(done)
		held := l.tell(ctx, r, s, knobs)
		if !held { // what it has left is not for the next one
			l.err = errors.Join(l.err, l.stopService())
		}
		r.finish(held)
	}()
	return r.id, nil
}

// tell runs a scenario and tells whether all that it promises has held.
func (l *runs) tell(ctx context.Context, r *run, s scenario.Scenario, knobs map[string]int) (held bool) {
	if err := l.serve(ctx, r); err != nil {
		r.Check(scenario.Check{Text: "the service of the lab starts", Why: err.Error()})
		return false
	}
	defer r.watch(ctx, l.service)()
	told := scenario.Start(ctx, l.service, s, knobs, r)
	told.End(ctx)
	if told.Held() {
		told.Balance(ctx)
	}
	return told.Held()
}

// serve starts the service where it does not run yet.
func (l *runs) serve(ctx context.Context, r *run) error {
	if l.service != nil {
		return nil
	}
	r.Say("", "A PostgreSQL, a payment provider, an API and a worker of the lab's own are started.")
	service, stop, err := stack.Throwaway(ctx, l.options)
	if err == nil {
		_, err = service.Worker.OpsURL(ctx)
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	l.service, l.stop = service, stop
	r.restart()
	return nil
}

func (l *runs) close() error {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	cancel()
	<-done
	if err := errors.Join(l.err, l.stopService()); err != nil {
		return fmt.Errorf("stop the lab: %w", err)
	}
	return nil
}

func (l *runs) stopService() error {
	stop := l.stop
	l.service, l.stop = nil, func() error { return nil }
	return stop()
}

func (l *runs) get(id string) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.all, func(r *run) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return l.all[i]
}

// report hands a span to the latest run.
func (l *runs) report(s spans.Span) {
	l.mu.Lock()
	var r *run
	if len(l.all) > 0 {
		r = l.all[len(l.all)-1]
	}
	l.mu.Unlock()
	if r != nil {
		r.report(s)
	}
}

// The states of a run.
const (
	running = "running"
	passed  = "passed"
	failed  = "failed"
)

// run is one run. It implements scenario.Listener.
type run struct {
	id, scenario string

	mu      sync.Mutex
	began   time.Time
	ended   time.Time
	state   string
	spans   []spans.Span
	byID    map[string]int
	checks  []check
	steps   []step
	service *scenario.Service // whose jobs are looked at while the run is under way
	jobs    []job
}

type check struct {
	Text string `json:"text"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"`
}

type step struct {
	At   int64  `json:"at_us"`
	Text string `json:"text"`
}

// restart lets the time of a run begin now, when its service works.
func (r *run) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.spans, r.byID = time.Now(), nil, map[string]int{}
}

func (r *run) report(s spans.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Start.Before(r.began) || r.state != running {
		return
	}
	if i, ok := r.byID[s.ID]; ok {
		r.spans[i] = s
	} else if len(r.spans) < maxSpans {
		r.byID[s.ID] = len(r.spans)
		r.spans = append(r.spans, s)
	}
}

func (r *run) finish(held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.service = time.Now(), nil
	r.state = failed
	if held {
		r.state = passed
	}
}

// Say implements scenario.Listener.
func (r *run) Say(who, text string) {
	if who != "" {
		text = who + ": " + text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step{time.Since(r.began).Microseconds(), text})
}

// Check implements scenario.Listener.
func (r *run) Check(c scenario.Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, check{c.Text, c.OK, c.Why})
}

// Exchange implements scenario.Listener. Its span tells all of it.
func (*run) Exchange(scenario.Exchange) {}

// Crowd implements scenario.Listener.
func (*run) Crowd([]scenario.Exchange) {}
