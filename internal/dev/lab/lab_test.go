package lab

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
	"example.com/orders/internal/dev/testkit"
)

var update = flag.Bool("update", false, "record testdata/run.json anew")

// visitor is a browser at a lab of its own.
type visitor struct {
	t        *testing.T
	url      string
	database string
}

func visit(t *testing.T) visitor {
	t.Helper()
	database := pgtest.Database(t, pgtest.Migrator("empty", func(context.Context, *sql.DB) error { return nil }))
	l, err := Serve(t.Context(), "127.0.0.1:0", stack.ThrowawayOptions{
		DatabaseURL: database, Worker: []string{testkit.Binary(t, "dev"), "worker"},
	}, "../../..", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Stop(context.WithoutCancel(t.Context()))) })
	return visitor{t, strings.TrimSuffix(l.URL(), "/lab/"), database}
}

// ask sends a request; headers are pairs of name and value, Host among them.
func (v visitor) ask(method, path, body string, headers ...string) (*http.Response, string) {
	v.t.Helper()
	r, err := http.NewRequest(method, v.url+path, strings.NewReader(body))
	require.NoError(v.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = r.Header.Get("Host")
	response, err := (&http.Client{Timeout: testkit.Wait}).Do(r)
	require.NoError(v.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	return response, string(raw)
}

// start starts a run.
func (v visitor) start(id string, knobs map[string]int) (run string) {
	v.t.Helper()
	body, err := json.Marshal(map[string]any{"scenario": id, "knobs": knobs})
	require.NoError(v.t, err)
	response, answer := v.ask(http.MethodPost, "/lab/runs", string(body))
	require.Equal(v.t, http.StatusCreated, response.StatusCode, answer)
	var started struct{ ID string }
	require.NoError(v.t, json.Unmarshal([]byte(answer), &started))
	return started.ID
}

// run runs a scenario to its end.
func (v visitor) run(id string, knobs map[string]int) (view runView, raw string) {
	v.t.Helper()
	run := v.start(id, knobs)
	testkit.Eventually(v.t, "the end of "+id, func() bool {
		_, raw = v.ask(http.MethodGet, "/lab/runs/"+run, "")
		view = runView{}
		return json.Unmarshal([]byte(raw), &view) == nil && view.State != running
	})
	return view, raw
}

// settings is what to run a scenario with: its defaults, and both ends of its knobs.
func settings(s scenario.Scenario) (all []map[string]int) {
	for _, at := range []func(scenario.Knob) int{
		func(k scenario.Knob) int { return k.Default }, func(k scenario.Knob) int { return k.Min },
		func(k scenario.Knob) int { return k.Max },
	} {
		knobs := map[string]int{}
		for _, k := range s.Knobs {
			knobs[k.Name] = at(k)
		}
		if !slices.ContainsFunc(all, func(other map[string]int) bool { return fmt.Sprint(other) == fmt.Sprint(knobs) }) {
			all = append(all, knobs)
		}
	}
	return all
}

// requirePassed checks a run that has ended: all that was promised held, and every part of the service is on the time line.
func requirePassed(t *testing.T, view runView) {
	t.Helper()
	require.Equal(t, passed, view.State, "%s: %+v", view.Scenario, view.Checks)
	seen := map[string]bool{}
	for _, i := range view.Items {
		seen[i.Lane] = true
		require.LessOrEqual(t, i.Start, i.End, "%+v", i)
		require.LessOrEqual(t, i.End, view.Took, "%+v", i)
	}
	for _, lane := range lanes() {
		require.True(t, seen[lane.ID], "%s shows nothing of the %s", view.Scenario, lane.ID)
	}
}

// Ensure a job that has ended between the end of the run and the reading of its row does not leave the time line.
func TestTimeLineEndsWithTheRun(t *testing.T) {
	t.Parallel()
	began := time.Now()
	ended, later := began.Add(time.Second), began.Add(2*time.Second)
	items := newBuilder(began, ended, nil).build([]job{{ID: 1, Created: began, Finalized: &later}, {ID: 2, Created: later}})
	require.Len(t, items, 2)
	for _, i := range items {
		require.Equal(t, ended.Sub(began).Microseconds(), i.End)
		require.LessOrEqual(t, i.Start, i.End)
	}
}

const killed = "worker-killed-mid-charge"

// Ensure every scenario passes at its defaults and at both ends of its knobs, and shows every part of the service.
func TestScenariosPass(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for _, s := range scenario.All() {
		for _, knobs := range settings(s) {
			if s.ID == killed {
				continue
			}
			view, raw := v.run(s.ID, knobs)
			t.Logf("%s %v: %d items, %d kB, %.1f s", s.ID, knobs, len(view.Items), len(raw)/1000, float64(view.Took)/1e6)
			requirePassed(t, view)
		}
	}
}

// Ensure a worker that is killed at the first, the last and the usual step is shown with its spans cut, and taken over from.
func TestKilledWorkerIsShown(t *testing.T) {
	t.Parallel()
	s, ok := scenario.Find(killed)
	require.True(t, ok)
	for _, knobs := range settings(s) {
		t.Run(fmt.Sprint(knobs), func(t *testing.T) {
			t.Parallel()
			view, _ := visit(t).run(killed, knobs)
			requirePassed(t, view)
			var cut, runs int
			for _, i := range view.Items {
				if i.Lane == laneWorker && i.Kind == kindSpan && i.Name == "charge-order" {
					runs++
				}
				if slices.Contains(i.Detail, detail{"cut", "its process was killed"}) {
					cut++
					require.False(t, i.OK)
				}
			}
			require.GreaterOrEqual(t, runs, 2, "runs of the charge")
			require.Positive(t, cut, "spans that the kill has cut")
		})
	}
}

// Ensure the time line of duplicates shows who claimed the key, with the bytes of every request and without a token.
func TestTimeLineShowsTheClaim(t *testing.T) {
	t.Parallel()
	view, raw := visit(t).run("duplicates-at-once", map[string]int{"duplicates": 5})
	requirePassed(t, view)
	groups, stored := map[string]bool{}, 0
	for _, i := range view.Items {
		if i.Lane == laneClient && i.Kind == kindMessage {
			groups[i.Group] = true
			require.Contains(t, i.Request, "Idempotency-Key: ")
			require.Contains(t, i.Request, "Authorization: Bearer …\r\n")
			require.Contains(t, i.Response, "HTTP/1.1 201 Created\r\n")
		}
		if strings.Contains(i.Name, "claim: store the key with its answer") {
			stored++
			require.Contains(t, i.Name, "commit")
			require.Contains(t, i.Request, "INSERT INTO idempotency_keys")
		}
	}
	require.Len(t, groups, 5, "requests at once have groups of their own")
	require.Equal(t, 1, stored, "one of them stored the key")
	require.NotContains(t, raw, "eyJ", "the beginning of every token")
	require.NotContains(t, raw, "sk_test")
}

// Ensure a promise that is broken makes a run fail and says what was seen instead: here every key expires at once.
func TestBrokenPromiseFails(t *testing.T) {
	t.Parallel()
	v := visit(t)
	view, _ := v.run("place-order", nil)
	requirePassed(t, view)
	db := pgtest.Open(t, v.database)
	_, err := db.Exec(t.Context(), `
		CREATE FUNCTION expire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			NEW.created_at := NEW.created_at - interval '2 hours'; NEW.expires_at := NEW.created_at + interval '1 hour'; RETURN NEW;
		END $$;
		CREATE TRIGGER expire BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION expire()`)
	require.NoError(t, err)
	pgtest.Close(t, db)
	view, _ = v.run("lost-answer", nil)
	require.Equal(t, failed, view.State)
	require.Contains(t, view.Checks, check{Text: "there is one order more", Why: "expected 2, got 3"})
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
	requirePassed(t, view)
}
