package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is everything that a run has measured.
type report struct {
	Command    string  `json:"command"`
	Date       string  `json:"date"`
	Machine    string  `json:"machine"`
	PostgreSQL string  `json:"postgresql"`
	Rounds     int     `json:"rounds"`
	Seconds    float64 `json:"seconds"`
	Took       string  `json:"took"`

	Measurements []measurement `json:"measurements"` // each round's
	Figures      []figure      `json:"figures"`      // their medians
	Payments     payments      `json:"payments"`
	APIResident  float64       `json:"api_resident_bytes"`
	Statements   []statement   `json:"statements,omitempty"`
	Scale        *scale        `json:"scale,omitempty"`

	clients []int
}

// measurement is one round of one load.
type measurement struct {
	Name      string  `json:"name"`
	Clients   int     `json:"clients"`
	PerSecond float64 `json:"per_second"`
	latency
	CPU     float64 `json:"api_cpu_ms_per_request"`
	Objects float64 `json:"api_objects_per_request"`
	Bytes   float64 `json:"api_bytes_per_request"`
}

func (m measurement) of(s sent) measurement {
	m.PerSecond, m.latency = s.perSecond(), latencyOf(s)
	return m
}

// figure is the medians of a load over its rounds.
type figure struct {
	measurement
	// Ratio is the median over the rounds of a load's ratio: place-order to its baseline, other loads to place-order.
	Ratio  float64 `json:"ratio"`
	Spread float64 `json:"ratio_spread"` // the greatest ratio less the smallest
}

func newReport(o options, postgresql string) *report {
	return &report{
		Command: o.command, Date: time.Now().UTC().Format(time.DateOnly), PostgreSQL: postgresql, Rounds: o.rounds,
		Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		Seconds: o.seconds, clients: o.clients,
	}
}

func (r *report) add(m measurement) { r.Measurements = append(r.Measurements, m) }

// publish computes the medians, prints them, and writes the files that the flags name.
func (r *report) publish(o options, out io.Writer) error {
	r.summarize()
	r.print(out)
	if o.json != "" {
		raw, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if err := os.WriteFile(o.json, append(raw, '\n'), 0o600); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	if o.page != "" {
		return r.write(o.page)
	}
	return nil
}

// against says what each load is compared with.
var against = map[string]string{
	placeOne: baselineOne, placeFive: baselineFive, replay: placeOne, getOrder: placeOne, notModified: placeOne,
	staleMatch: placeOne,
}

func (r *report) summarize() {
	for _, name := range []string{
		baselineOne, placeOne, baselineFive, placeFive, replay, getOrder, notModified, staleMatch, oneKey,
	} {
		for _, clients := range append(slices.Clone(r.clients), duplicates) {
			if (name == oneKey) != (clients == duplicates) {
				continue
			}
			if f, ok := r.figure(name, clients); ok {
				r.Figures = append(r.Figures, f)
			}
		}
	}
}

func (r *report) of(name string, clients int) (all []measurement) {
	for _, m := range r.Measurements {
		if m.Name == name && m.Clients == clients {
			all = append(all, m)
		}
	}
	return all
}

func (r *report) figure(name string, clients int) (f figure, ok bool) {
	all := r.of(name, clients)
	if len(all) == 0 {
		return f, false
	}
	f.measurement = measurement{Name: name, Clients: clients}
	f.Samples = all[0].Samples
	for _, field := range []func(*measurement) *float64{
		func(m *measurement) *float64 { return &m.PerSecond }, func(m *measurement) *float64 { return &m.P50 },
		func(m *measurement) *float64 { return &m.P95 }, func(m *measurement) *float64 { return &m.P99 },
		func(m *measurement) *float64 { return &m.CPU }, func(m *measurement) *float64 { return &m.Objects },
		func(m *measurement) *float64 { return &m.Bytes },
	} {
		values := make([]float64, len(all))
		for i := range all {
			values[i] = *field(&all[i])
		}
		*field(&f.measurement) = median(values)
	}
	f.Ratio, f.Spread = r.ratio(all, r.of(against[name], clients))
	return f, true
}

// ratio compares within each round, since the loads of a round see the machine in the same state.
func (r *report) ratio(all, base []measurement) (middle, spread float64) {
	if len(all) != len(base) {
		return 0, 0
	}
	ratios := make([]float64, len(all))
	for i := range all {
		ratios[i] = all[i].PerSecond / base[i].PerSecond
	}
	return median(ratios), slices.Max(ratios) - slices.Min(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s, PostgreSQL %s, %d rounds of %g s\n\n", r.Machine, r.PostgreSQL, r.Rounds, r.Seconds)
	r.printFigures(out)
	for _, section := range []string{r.paymentLines(), r.statementLines(), r.scaleLines()} {
		if section != "" {
			fmt.Fprint(out, "\n", section)
		}
	}
}

func (r *report) printFigures(out io.Writer) {
	if len(r.Figures) == 0 {
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{figureHeader}, r.figureRows()...) {
		for _, cell := range row {
			fmt.Fprint(t, cell, "\t")
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}
