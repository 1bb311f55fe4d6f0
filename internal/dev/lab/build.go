package lab

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
)

// The instrumentation scopes of the service's spans, and the names by which some of them are known.
const (
	scopeHTTP  = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	scopePgx   = "github.com/exaring/otelpgx"
	scopeStore = "orders/postgres"
	scopeRiver = "github.com/riverqueue/rivercontrib/otelriver"
	workPrefix = "river.work/"
	batchName  = "batch start"
)

// builder makes the items of a run out of its spans.
type builder struct {
	began, now time.Time
	spans      []spans.Span
	byID       map[string]spans.Span
	children   map[string][]spans.Span // by the id of their parent
	shown      map[string]bool         // the ids of the items
}

func newBuilder(began, now time.Time, all []spans.Span) *builder {
	b := &builder{
		began: began, now: now, spans: all, byID: map[string]spans.Span{}, children: map[string][]spans.Span{},
		shown: map[string]bool{},
	}
	for _, s := range all {
		b.byID[s.ID] = s
		b.children[s.Parent] = append(b.children[s.Parent], s)
	}
	return b
}

func (b *builder) build(jobs []job) []item {
	items := []item{}
	for _, s := range b.spans {
		if i, ok := b.item(s); ok && !b.aside(s) {
			items = append(items, i)
			b.shown[i.ID] = true
		}
	}
	for _, j := range jobs {
		items = append(items, b.jobItems(j)...)
	}
	for i := range items { // what is not shown is skipped on the way up
		for p := items[i].Parent; p != "" && !b.shown[p]; p = items[i].Parent {
			items[i].Parent = b.byID[p].Parent
		}
	}
	slices.SortStableFunc(items, func(x, y item) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End)) })
	group(items)
	return items
}

// aside tells whether a span belongs to something beside the scenario. What the scenario reads for its checks begins its
// trace at the API, and a periodic job begins one at the worker.
func (b *builder) aside(s spans.Span) bool {
	for s.Parent != "" {
		parent, ok := b.byID[s.Parent]
		if !ok {
			return false
		}
		s = parent
	}
	return s.Kind == "server" && s.Scope != labScope || s.Scope == scopeRiver
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
	case scopeHTTP:
		ok = b.ofHTTP(s, &i)
	case scopePgx:
		ok = b.ofPostgreSQL(s, &i)
	case scopeStore:
		i.Lane, ok = lanePostgres, true
	case scopeRiver:
		i.Lane, i.Name, ok = laneWorker, strings.TrimPrefix(s.Name, workPrefix), true
	}
	return i, ok
}

// micros is a time on the time line. What had not ended by now goes on until now: a job's row may be read after the run
// has ended.
func (b *builder) micros(t time.Time) int64 {
	if t.IsZero() || t.After(b.now) {
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
	if s.Name == batchName {
		var names, texts []string
		for _, statement := range b.children[s.ID] {
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
func (b *builder) inBatch(s spans.Span) bool { return b.byID[s.Parent].Name == batchName }

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
