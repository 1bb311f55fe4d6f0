package scenario

import (
	"context"
	"fmt"
	"time"
)

// Told is a chapter of the tour that has been told.
type Told struct {
	Title  string
	Checks []Check
	Took   time.Duration
}

// chapter is one chapter of the tour.
type chapter struct {
	title, promise string
	tell           func(ctx context.Context) *Run
}

// tour is a Tour while it is told.
type tour struct {
	service  *Service
	listener Listener
	runs     []*Run
}

// Tour tells every scenario, a chapter each, on a service that has done nothing before. begin is told of a chapter before
// it. A tour ends early only where ctx does.
func Tour(ctx context.Context, service *Service, l Listener, begin func(n int, title, promise string)) (all []Told) {
	t := &tour{service: service, listener: l}
	chapters := t.chapters()
	checked := map[*Run]int{}
	for i, c := range chapters {
		if ctx.Err() != nil {
			return all
		}
		begin(i+1, c.title, c.promise)
		began := time.Now()
		r := c.tell(ctx)
		all = append(all, Told{Title: c.title, Checks: r.Checks[checked[r]:], Took: time.Since(began)})
		checked[r] = len(r.Checks)
	}
	return all
}

// chapters is the chapters in order. The crash comes first because a crashed worker's job is taken over only once the worker
// cannot be working on it any more; the other chapters are told meanwhile.
func (t *tour) chapters() []chapter {
	all := []chapter{
		t.of("worker-killed-mid-charge", nil), t.of("place-order", nil), t.of("lost-answer", nil), t.of("duplicates-at-once", nil), t.of("key-reuse", nil),
		t.of("another-actors-key", nil), t.of("expired-key", nil), t.of("declined-card", nil), t.of("stale-editor", nil),
		t.of("address-against-shipment", nil), t.of("ship-against-cancel", nil), t.of("saved-error", nil),
		t.of("cancel-against-charge", map[string]int{"winner": chargeWins}),
		t.of("cancel-against-charge", map[string]int{"winner": cancellationWins}),
		t.of("event-delivered-thrice", nil), t.of("provider-down", nil), t.of("refunds-at-once", nil),
		t.of("refund-fails-later", nil), t.of("many-buyers", nil),
		{
			title: "The killed worker's charge", promise: "another worker reads what the provider holds, and finishes it: one charge",
			tell: func(ctx context.Context) *Run { t.runs[0].End(ctx); return t.runs[0] },
		},
		t.own("The books", "what was charged, refunded and sold adds up, for every order and sku", books),
		t.own("The metrics", "/metrics of the API and the worker tell the same story", func(r *Run) {
			var told []Exchange
			for _, run := range t.runs {
				told = append(told, run.Told()...)
			}
			readMetrics(r, told)
		}),
	}
	all[0].promise += fmt.Sprintf("; chapter %d tells how it ends", len(all)-2)
	return all
}

// of is the chapter of a scenario.
func (t *tour) of(id string, chosen map[string]int) chapter {
	s, _ := Find(id)
	knobs, err := s.Set(chosen)
	if err != nil {
		panic(err) // the choices are our own
	}
	title := s.Title
	for _, k := range s.Knobs {
		if value, ok := chosen[k.Name]; ok {
			title += ", " + k.Choices[value-k.Min].Label
		}
	}
	return chapter{title: title, promise: s.Promise, tell: func(ctx context.Context) *Run {
		r := Start(ctx, t.service, s, knobs, t.listener)
		t.runs = append(t.runs, r)
		return r
	}}
}

// own is a chapter that only a tour has.
func (t *tour) own(title, promise string, run func(*Run)) chapter {
	return chapter{title: title, promise: promise, tell: func(ctx context.Context) *Run {
		return Start(ctx, t.service, Scenario{Title: title, Promise: promise, run: run}, nil, t.listener)
	}}
}
