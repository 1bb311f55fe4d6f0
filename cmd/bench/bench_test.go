package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
)

// Ensure the program runs from end to end on the smallest amounts: every load has a figure, and the page, the chart and
// the JSON are written.
func TestBenchRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n<!-- begin generated: bench -->\n<!-- end generated: bench -->\nafter\n"), 0o600))
	args := []string{
		"-seconds=0.1", "-rounds=1", "-samples=1", "-clients=2", "-skus=50", "-statements", "-limit=2m",
		"-write=" + page, "-json=" + filepath.Join(dir, "bench.json"),
	}
	bindir, err := postgres.FindBinDir(t.Context())
	require.NoError(t, err)
	if findPgbench(bindir) == "" {
		args = append(args, "-no-baseline")
	}
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, run(t.Context(), o, &out), &out)

	var r report
	raw, err := os.ReadFile(o.json)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &r))
	requireFigures(t, o, r)
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^before\n.*\| place-order, 1 line \| 2 \|.*\nafter\n$`, string(written))
	chart, err := os.Open(filepath.Join(dir, chartName))
	require.NoError(t, err)
	defer chart.Close()
	d := xml.NewDecoder(chart)
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
}

// Ensure the program runs at scale on small amounts: replays and reads of loaded orders are answered, and all expired
// keys are purged.
func TestBenchRunsAtScale(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scale.json")
	args := []string{
		"-scale", "-seconds=0.1", "-rounds=1", "-skus=50", "-rows=1000", "-expired=1000", "-no-baseline", "-limit=2m", "-json=" + file,
	}
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, run(t.Context(), o, &out), &out)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Len(t, r.Scale.Compare, 5)
	for _, c := range r.Scale.Compare {
		require.Positive(t, c.Before, c.Name)
		require.Positive(t, c.After, c.Name)
	}
	require.Positive(t, r.Scale.PurgeRate)
	require.Positive(t, r.Scale.Size)
}

func requireFigures(t *testing.T, o options, r report) {
	t.Helper()
	measured := map[string]figure{}
	for _, f := range r.Figures {
		measured[f.Name] = f
	}
	for _, name := range []string{placeOne, placeFive, replay, getOrder, notModified, staleMatch, oneKey} {
		require.Positive(t, measured[name].PerSecond, name)
		require.Positive(t, measured[name].P99, name)
	}
	if !o.noBaseline {
		require.Positive(t, measured[baselineOne].PerSecond)
		require.Positive(t, measured[placeFive].Ratio)
	}
	require.Positive(t, measured[placeOne].Objects)
	require.Positive(t, r.Payments.First.P50)
	require.Positive(t, r.Payments.Second.P50)
	require.Positive(t, r.Payments.Drained)
	require.Positive(t, r.Payments.Resident)
	require.Positive(t, r.APIResident)
	require.NotEmpty(t, r.Statements)
}

// Ensure percentiles are by nearest rank, medians are medians, and a page without marks is not rewritten.
func TestFiguresAreWhatTheySay(t *testing.T) {
	t.Parallel()
	s := sent{}
	for i := range 100 {
		s.times = append(s.times, time.Duration(i+1)*time.Millisecond)
	}
	require.Equal(t, 50.0, s.percentile(50))
	require.Equal(t, 99.0, s.percentile(99))
	require.Equal(t, 100.0, s.percentile(100))
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	_, err := replaceSection("no marks", "bench", "x")
	require.Error(t, err)
}

// Ensure a flag that makes no sense is refused before anything starts.
func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-clients=0", "-clients=a", "-seconds=0", "-rounds=0", "-skus=4", "-rows=1", "-unknown", "-quick -write=x"} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.Error(t, err, args)
	}
	o, err := parse([]string{"-quick", "-clients=1,8"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []int{1, 8}, o.clients)
	require.Equal(t, 1, o.rounds)
}

// Ensure the command that a page names has what the figures depend on, and no path of the machine.
func TestCommandHasNoPath(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-write=docs/performance.md":                "make bench",
		"-rounds=1 -json=/some/where -seconds=2":    `make bench BENCH="-rounds=1 -seconds=2"`,
		"-scale -rows=1000 -write=/some/where/page": `make bench-scale BENCH="-rows=1000"`,
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, o.command)
	}
}
