package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

type runView struct {
	ID       string  `json:"id"`
	Scenario string  `json:"scenario"`
	State    string  `json:"state"`
	Took     int64   `json:"took_us"`
	Lanes    []lane  `json:"lanes"`
	Items    []item  `json:"items"`
	Checks   []check `json:"checks"`
	Steps    []step  `json:"steps"`
}

type lane struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// The lanes, from the caller to the card.
const (
	laneClient   = "client"
	laneAPI      = "api"
	lanePostgres = "postgres"
	laneOutbox   = "outbox"
	laneWorker   = "worker"
	laneProvider = "provider"
)

func lanes() []lane {
	return []lane{
		{laneClient, "Clients"}, {laneAPI, "API"}, {lanePostgres, "PostgreSQL"}, {laneOutbox, "Outbox"},
		{laneWorker, "Worker"}, {laneProvider, "Payment provider"},
	}
}

// The kinds of an item.
const (
	kindSpan    = "span"
	kindMessage = "message"
	kindMark    = "mark"
)

// item is something on the time line; its times are microseconds since the run began.
type item struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Lane     string   `json:"lane"`
	To       string   `json:"to,omitempty"` // the lane that a message goes to
	Name     string   `json:"name"`
	Start    int64    `json:"start_us"`
	End      int64    `json:"end_us"`
	OK       bool     `json:"ok"`
	Parent   string   `json:"parent"`
	Group    string   `json:"group"`
	Detail   []detail `json:"detail"`
	Request  string   `json:"request"`
	Response string   `json:"response"`
}

type detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// view is what is known of a run so far.
func (r *run) view(ctx context.Context) runView {
	r.readJobs(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	end := cmp.Or(r.ended, time.Now())
	b := newBuilder(r.began, end, r.spans)
	return runView{
		ID: r.id, Scenario: r.scenario, State: r.state, Took: end.Sub(r.began).Microseconds(), Lanes: lanes(),
		Items: b.build(r.jobs), Checks: slices.Clone(r.checks), Steps: slices.Clone(r.steps),
	}
}

// group tells requests of one actor apart that are under way at the same time. items are sorted by their start.
func group(items []item) {
	ends := map[string][]int64{} // of each actor's lines
	for n, i := range items {
		if i.Kind != kindMessage || i.Lane != laneClient {
			continue
		}
		lines := ends[i.Group]
		at := slices.IndexFunc(lines, func(end int64) bool { return end <= i.Start })
		if at < 0 {
			at, lines = len(lines), append(lines, 0)
		}
		lines[at] = i.End
		ends[i.Group] = lines
		if at > 0 {
			items[n].Group = fmt.Sprintf("%s %d", i.Group, at+1)
		}
	}
}
