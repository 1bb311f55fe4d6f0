// Package ops tests what operators load into Prometheus and Grafana against what the service really shows. It is a
// module of its own, so that Prometheus does not become a dependency of the service.
package ops

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// The readings are of a story in which everything happened once (internal/e2e, TestTelemetryOfTheProcesses, which also
// checks that they are still what the service shows).
var readings = map[string]string{"orders-api": "testdata/api.prom", "orders-worker": "testdata/worker.prom"}

// history is the time that the readings are made to span, a reading every quarter of a minute.
const (
	history = 4 * time.Hour
	every   = 15 * time.Second
)

var end = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// series is a name, its labels, and what it shows at each time since the start of the history.
type series struct {
	labels labels.Labels
	value  func(since time.Duration) float64
}

// world is what Prometheus knows: a stand-in for its storage.
type world struct{ series []series }

// readWorld makes a history out of the readings, with the labels that Prometheus adds. Counters grow from nothing to
// what the reading says, over and over; gauges stand still.
func readWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	for target, path := range readings {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		counter := false
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch entry {
			case textparse.EntryType:
				_, kind := p.Type()
				counter = kind == "counter" || kind == "histogram"
			case textparse.EntrySeries:
				_, _, v := p.Series()
				var l labels.Labels
				p.Labels(&l)
				w.series = append(w.series, series{scraped(l, target), course(v, counter)})
			}
		}
	}
	return w
}

// scraped adds the labels of the target, as Prometheus does: one of the same name is renamed.
func scraped(l labels.Labels, target string) labels.Labels {
	b := labels.NewBuilder(l)
	for name, value := range map[string]string{"job": target, "instance": target + ":8081"} {
		if had := l.Get(name); had != "" {
			b.Set("exported_"+name, had)
		}
		b.Set(name, value)
	}
	return b.Labels()
}

func course(v float64, counter bool) func(time.Duration) float64 {
	if !counter {
		return func(time.Duration) float64 { return v }
	}
	return func(since time.Duration) float64 { return v * since.Minutes() }
}

// with returns a world in which the series with these labels show something else. One that is not in the readings, such
// as another problem code, is added beside those that it resembles.
func (w *world) with(name, selector string, value func(time.Duration) float64) *world {
	wanted := map[string]string{}
	for pair := range strings.SplitSeq(selector, ",") {
		if n, v, ok := strings.Cut(pair, "="); ok {
			wanted[n] = v
		}
	}
	changed := &world{}
	found := false
	for _, s := range w.series {
		if s.labels.Get(labels.MetricName) == name && has(s.labels, wanted) {
			s.value, found = value, true
		}
		changed.series = append(changed.series, s)
	}
	if found {
		return changed
	}
	i := slices.IndexFunc(w.series, func(s series) bool { return s.labels.Get(labels.MetricName) == name })
	if i < 0 {
		return changed
	}
	b := labels.NewBuilder(w.series[i].labels)
	for n, v := range wanted {
		b.Set(n, v)
	}
	changed.series = append(changed.series, series{b.Labels(), value})
	return changed
}

// without returns the sample without a metric.
func (w *world) without(name string) *world {
	rest := &world{series: slices.Clone(w.series)}
	rest.series = slices.DeleteFunc(rest.series, func(s series) bool { return s.labels.Get(labels.MetricName) == name })
	return rest
}

func has(l labels.Labels, wanted map[string]string) bool {
	for n, v := range wanted {
		if l.Get(n) != v {
			return false
		}
	}
	return true
}

// names is the labels that each metric has, in any series.
func (w *world) names() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range w.series {
		name := s.labels.Get(labels.MetricName)
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		s.labels.Range(func(l labels.Label) { all[name][l.Name] = true })
	}
	return all
}

// ask evaluates an expression at the end of the history.
func (w *world) ask(t *testing.T, expr string) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	query, err := engine.NewInstantQuery(t.Context(), w, nil, expr, end)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%s: %v", expr, result.Err)
	}
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return vector
}

// Querier implements storage.Queryable.
func (w *world) Querier(_, _ int64) (storage.Querier, error) { return querier{w}, nil }

type querier struct{ *world }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, h *storage.SelectHints, m ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.series {
		if matches(s.labels, m) {
			found = append(found, storage.NewListSeries(s.labels, samples(s, h)))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{all: found, at: -1}
}

func matches(l labels.Labels, all []*labels.Matcher) bool {
	return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
}

func samples(s series, h *storage.SelectHints) (list []chunks.Sample) {
	for since := time.Duration(0); since <= history; since += every {
		at := end.Add(since - history).UnixMilli()
		if v := s.value(since); at >= h.Start && at <= h.End && !math.IsNaN(v) {
			list = append(list, sample{at, v})
		}
	}
	return list
}

// LabelValues implements storage.Querier.
func (querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.New("not needed")
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.New("not needed")
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

type set struct {
	all []storage.Series
	at  int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *set) At() storage.Series                { return s.all[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

type sample struct {
	at int64
	v  float64
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// selectors is every selector of an expression.
func selectors(t *testing.T, expr string) (all []*parser.VectorSelector) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			all = append(all, v)
		}
		return nil
	})
	return all
}

// requireKnown checks that the service shows every metric that an expression names, with the labels that it names.
func requireKnown(t *testing.T, w *world, expr string) {
	t.Helper()
	known := w.names()
	for _, s := range selectors(t, expr) {
		if known[s.Name] == nil {
			t.Errorf("%s: the service does not show %s", expr, s.Name)
			continue
		}
		for _, m := range s.LabelMatchers {
			if !known[s.Name][m.Name] {
				t.Errorf("%s: %s has no label %s, only %v", expr, s.Name, m.Name, slices.Sorted(maps.Keys(known[s.Name])))
			}
		}
	}
}
