package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
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
	end := r.ended
	if end.IsZero() {
		end = time.Now()
	}
	b := &builder{began: r.began, now: end, spans: r.spans, children: map[string][]spans.Span{}, ids: map[string]bool{}}
	return runView{
		ID: r.id, Scenario: r.scenario, State: r.state, Took: end.Sub(r.began).Microseconds(), Lanes: lanes(),
		Items: b.build(r.jobs), Checks: slices.Clone(r.checks), Steps: slices.Clone(r.steps),
	}
}

// builder makes the items of a run out of its spans.
type builder struct {
	began, now time.Time
	spans      []spans.Span
	children   map[string][]spans.Span // by the id of their parent
	ids        map[string]bool         // of the items
}

func (b *builder) build(jobs []job) []item {
	byID := map[string]spans.Span{}
	for _, s := range b.spans {
		byID[s.ID] = s
		b.children[s.Parent] = append(b.children[s.Parent], s)
	}
	items := []item{}
	for _, s := range b.spans {
		if i, ok := b.item(s); ok && !b.ofAuditor(s, byID) {
			items = append(items, i)
			b.ids[i.ID] = true
		}
	}
	for _, j := range jobs {
		items = append(items, b.jobItems(j)...)
	}
	for i := range items { // what is not shown is skipped on the way up
		for p := items[i].Parent; p != "" && !b.ids[p]; p = items[i].Parent {
			items[i].Parent = byID[p].Parent
		}
	}
	slices.SortStableFunc(items, func(x, y item) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End)) })
	group(items)
	return items
}

// ofAuditor tells whether a span belongs to what the scenario reads for its checks: such a request begins its trace at the API.
func (*builder) ofAuditor(s spans.Span, byID map[string]spans.Span) bool {
	for s.Parent != "" {
		parent, ok := byID[s.Parent]
		if !ok {
			return false
		}
		s = parent
	}
	return s.Kind == "server" && s.Scope != labScope
}

// item shows one span, or leaves it out.
func (b *builder) item(s spans.Span) (i item, ok bool) {
	i = item{
		ID: s.ID, Kind: kindSpan, Name: s.Name, Start: b.micros(s.Start), End: b.micros(s.End), OK: s.Error == "" && !s.Cut,
		Parent: s.Parent, Request: s.Attributes[scenario.AttrRequest], Response: s.Attributes[scenario.AttrResponse],
		Detail: details(s),
	}
	switch s.Scope {
	case scenario.Scope:
		ok = b.ofScenario(s, &i)
	case labScope:
		ok = b.ofLab(s, &i)
	case "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp":
		ok = b.ofHTTP(s, &i)
	case "github.com/exaring/otelpgx":
		ok = b.ofPostgreSQL(s, &i)
	case "orders/postgres":
		i.Lane, ok = lanePostgres, true
	case "github.com/riverqueue/rivercontrib/otelriver":
		i.Lane, ok = laneWorker, s.Attributes["kind"] != "purge-idempotency-keys" && s.Attributes["kind"] != "reconcile-payments"
		i.Name = strings.TrimPrefix(s.Name, "river.work/")
	}
	return i, ok
}

// micros is a time on the time line; what has not ended goes on until now.
func (b *builder) micros(t time.Time) int64 {
	if t.IsZero() {
		t = b.now
	}
	return max(0, t.Sub(b.began).Microseconds())
}

func (b *builder) ofScenario(s spans.Span, i *item) bool {
	if lane := s.Attributes[scenario.AttrLane]; lane != "" {
		i.Lane = lane
		if s.Attributes[scenario.AttrMark] == "true" {
			i.Kind = kindMark
		}
		return true
	}
	i.Kind, i.Lane, i.To, i.Group = kindMessage, laneClient, laneAPI, s.Attributes[scenario.AttrActor]
	return true
}

func (b *builder) ofLab(s spans.Span, i *item) bool {
	switch {
	case s.Attributes[attrWait] == "true":
		i.Lane, i.Group = lanePostgres, strings.TrimPrefix(s.Attributes[attrApplication], "orders-")
	case s.Attributes[attrCaller] == laneProvider:
		i.Kind, i.Lane, i.To = kindMessage, laneProvider, s.Attributes[attrCallee]
	default:
		i.Lane = s.Attributes[attrCallee]
	}
	return true
}

// ofHTTP shows the API's side of a request, and a call of the worker with the bytes that its tap saw.
func (b *builder) ofHTTP(s spans.Span, i *item) bool {
	if s.Kind == "server" {
		i.Lane = laneAPI
		return true
	}
	i.Kind, i.Lane, i.To = kindMessage, laneWorker, laneProvider
	for _, tapped := range b.children[s.ID] {
		i.Name = tapped.Name
		i.Request, i.Response = tapped.Attributes[scenario.AttrRequest], tapped.Attributes[scenario.AttrResponse]
	}
	return true
}

func (b *builder) ofPostgreSQL(s spans.Span, i *item) bool {
	i.Lane = lanePostgres
	if parent := b.children[s.ID]; s.Name == "batch start" {
		var names, texts []string
		for _, statement := range parent {
			names = append(names, statementName(statement))
			texts = append(texts, queryText(statement))
		}
		i.Name, i.Request = strings.Join(slices.Compact(names), ", "), strings.Join(texts, ";\n")
		if len(names) == 0 {
			i.Name = "statements that were sent together"
		}
		return true
	}
	i.Request, i.Name = queryText(s), statementName(s)
	switch {
	case b.inBatch(s): // which shows it
		return false
	case s.Attributes["pgx.prepare_stmt.name"] != "": // a part of its statement
		return false
	case s.Name == "pool.acquire":
		i.Name = "wait for a connection"
		return s.End.IsZero() || s.End.Sub(s.Start) >= time.Millisecond
	}
	return true
}

// inBatch tells whether a statement was sent together with others.
func (b *builder) inBatch(s spans.Span) bool {
	return slices.ContainsFunc(b.spans, func(p spans.Span) bool { return p.ID == s.Parent && p.Name == "batch start" })
}

// jobItems shows one row of the outbox, and its way to the worker.
func (b *builder) jobItems(j job) []item {
	_, after, _ := strings.Cut(j.Parent, "-")
	traceID, after, _ := strings.Cut(after, "-")
	parent, _, _ := strings.Cut(after, "-")
	end := time.Time{}
	if j.Finalized != nil {
		end = *j.Finalized
	}
	row := item{
		ID: fmt.Sprintf("job-%d", j.ID), Kind: kindSpan, Lane: laneOutbox, Name: j.Kind, Start: b.micros(j.Created),
		End: b.micros(end), OK: j.State != "discarded" && j.State != "cancelled", Parent: parent,
		Detail: []detail{
			{"job", fmt.Sprint(j.ID)}, {"state", j.State}, {"attempts", fmt.Sprint(j.Attempt)}, {"last error", j.LastError},
		},
	}
	b.ids[row.ID] = true
	items := []item{row}
	for _, work := range b.children[parent] {
		if work.Trace == traceID && work.Name == "river.work/"+j.Kind {
			items = append(items, item{
				ID: row.ID + "-" + work.ID, Kind: kindMessage, Lane: laneOutbox, To: laneWorker, Name: j.Kind, OK: true,
				Start: row.Start, End: b.micros(work.Start), Parent: row.ID, Detail: []detail{{"job", fmt.Sprint(j.ID)}},
			})
		}
	}
	return items
}

// details are the attributes that a reader looks for.
func details(s spans.Span) []detail {
	hidden := []string{
		scenario.AttrRequest, scenario.AttrResponse, scenario.AttrLane, scenario.AttrMark, attrCaller, attrCallee, attrWait,
		"db.query.text", "db.system.name", "db.namespace", "user.name", "db.user", "pgx.operation.type",
	}
	all := []detail{}
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		if value := s.Attributes[name]; !slices.Contains(hidden, name) && value != "" {
			all = append(all, detail{name, value})
		}
	}
	if s.Error != "" {
		all = append(all, detail{"error", s.Error})
	}
	if s.Cut {
		all = append(all, detail{"cut", "its process was killed"})
	}
	return all
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
