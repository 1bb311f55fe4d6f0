package lab

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
	"example.com/orders/internal/dev/testkit"
)

var update = flag.Bool("update", false, "record testdata/run.json anew")

// visitor is a browser at a lab of its own.
type visitor struct {
	t   *testing.T
	url string
}

func visit(t *testing.T) visitor {
	t.Helper()
	database := pgtest.Database(t, pgtest.Migrator("empty", func(context.Context, *sql.DB) error { return nil }))
	l, err := Serve(t.Context(), "127.0.0.1:0", stack.ThrowawayOptions{
		DatabaseURL: database, Worker: []string{testkit.Binary(t, "dev"), "worker"},
	}, "../../..", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Stop(context.WithoutCancel(t.Context()))) })
	return visitor{t, strings.TrimSuffix(l.URL(), "/lab/")}
}

func (v visitor) ask(method, path, body string) (status int, answer string) {
	v.t.Helper()
	r, err := http.NewRequest(method, v.url+path, strings.NewReader(body))
	require.NoError(v.t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(v.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return response.StatusCode, string(raw)
}

// run runs a scenario to its end.
func (v visitor) run(id string, knobs map[string]int) (view runView, raw string) {
	v.t.Helper()
	body, err := json.Marshal(map[string]any{"scenario": id, "knobs": knobs})
	require.NoError(v.t, err)
	status, answer := v.ask(http.MethodPost, "/lab/runs", string(body))
	require.Equal(v.t, http.StatusCreated, status, answer)
	var started struct{ ID string }
	require.NoError(v.t, json.Unmarshal([]byte(answer), &started))
	testkit.Eventually(v.t, "the end of "+id, func() bool {
		_, raw = v.ask(http.MethodGet, "/lab/runs/"+started.ID, "")
		view = runView{}
		return json.Unmarshal([]byte(raw), &view) == nil && view.State != running
	})
	return view, raw
}

// Ensure every scenario passes, at its defaults and at both ends of its knobs.
func TestScenariosPass(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for _, s := range scenario.All() {
		for _, at := range []func(scenario.Knob) int{
			func(k scenario.Knob) int { return k.Default }, func(k scenario.Knob) int { return k.Min },
			func(k scenario.Knob) int { return k.Max },
		} {
			knobs := map[string]int{}
			for _, k := range s.Knobs {
				knobs[k.Name] = at(k)
			}
			view, _ := v.run(s.ID, knobs)
			t.Logf("%s %v: %d items, %.1f s", s.ID, knobs, len(view.Items), float64(view.Took)/1e6)
			require.Equal(t, passed, view.State, "%s %v: %+v", s.ID, knobs, view.Checks)
			if len(s.Knobs) == 0 {
				break
			}
		}
	}
}

// Ensure the recorded run that the page is tested with is one of this lab: with -update it is recorded anew.
func TestRecordedRun(t *testing.T) {
	t.Parallel()
	const path = "testdata/run.json"
	if *update {
		_, raw := visit(t).run("duplicates-at-once", map[string]int{"duplicates": 6})
		require.NoError(t, os.WriteFile(path, []byte(raw), 0o644))
	}
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	var view runView
	require.NoError(t, d.Decode(&view))
	require.NotEmpty(t, view.Items)
}
