package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	pageBegin = "<!-- begin generated: %s -->\n"
	pageEnd   = "<!-- end generated: %s -->"
	chartName = "performance.svg"
)

var figureHeader = []string{
	"load", "clients", "per second", "ratio", "± spread", "p50 ms", "p95 ms", "p99 ms", "API CPU ms", "allocations", "KiB",
}

// figureRows is a row for each figure. A cell is empty where there is nothing to measure.
func (r *report) figureRows() (rows [][]string) {
	number := func(format string, v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	for _, f := range r.Figures {
		rows = append(rows, []string{
			f.Name, fmt.Sprint(f.Clients), number("%.0f", f.PerSecond), number("%.2f", f.Ratio), number("%.2f", f.Spread/2),
			number("%.1f", f.P50), number("%.1f", f.P95), number("%.1f", f.P99), number("%.2f", f.CPU), number("%.0f", f.Objects),
			number("%.1f", f.Bytes/1024),
		})
	}
	return rows
}

func (r *report) paymentLines() string {
	p := r.Payments
	if p.First.Samples == 0 {
		return ""
	}
	var s strings.Builder
	for _, l := range []struct {
		what string
		latency
	}{{"From 201 to the ledger", p.First}, {"The same, 20 ms after another order", p.Second}} {
		fmt.Fprintf(&s, "- %s: p50 %.1f ms, p95 %.1f ms, p99 %.1f ms (%d orders).\n", l.what, l.P50, l.P95, l.P99, l.Samples)
	}
	fmt.Fprintf(&s, "- One after the other: %.0f orders accepted a second, %.0f charges drained a second: ratio %.2f.\n",
		p.Accepted, p.Drained, p.Drained/p.Accepted)
	fmt.Fprintf(&s, "- Both at once: %.0f accepted a second, %.0f drained a second.\n", p.AcceptedTogether, p.DrainedTogether)
	fmt.Fprintf(&s, "- Resident memory: API %.0f MiB at most, worker %.0f MiB.\n", r.APIResident/(1<<20), p.Resident/(1<<20))
	return s.String()
}

// write replaces the generated section of the page, and the chart next to it. The rest of the page is written by hand.
func (r *report) write(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	kind, section := "bench", r.section()
	if r.Scale != nil {
		kind = "bench-scale"
	} else if err := os.WriteFile(filepath.Join(filepath.Dir(path), chartName), []byte(r.chart()), 0o600); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	page, err := replaceSection(string(raw), kind, section)
	if err != nil {
		return fmt.Errorf("page %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o600)
}

func replaceSection(page, kind, section string) (string, error) {
	begin, end := fmt.Sprintf(pageBegin, kind), fmt.Sprintf(pageEnd, kind)
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("there is no section %q to rewrite", kind)
	}
	return before + begin + section + end + after, nil
}

func (r *report) section() string {
	var s strings.Builder
	fmt.Fprintf(&s, "\nMeasured on %s: %s, PostgreSQL %s, %d rounds of %g s, in %s, by\n\n    %s\n\n",
		r.Date, r.Machine, r.PostgreSQL, r.Rounds, r.Seconds, r.Took, r.Command)
	if r.Scale == nil {
		fmt.Fprintf(&s, "![Requests a second](%s)\n\n%s\n", chartName, r.figureTable())
	}
	s.WriteString(strings.Join(slices.DeleteFunc([]string{r.paymentLines(), r.statementLines(), r.scaleLines()},
		func(lines string) bool { return lines == "" }), "\n"))
	return s.String() + "\n"
}

func (r *report) figureTable() string {
	var s strings.Builder
	for i, row := range append([][]string{figureHeader}, r.figureRows()...) {
		s.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			s.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	return s.String()
}
