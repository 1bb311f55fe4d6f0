package jobs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"
)

// outcomes is an Observer that remembers the outcomes of jobs.
type outcomes struct{ seen []string }

func (o *outcomes) Job(_ context.Context, kind, outcome string, _, _ time.Duration) {
	o.seen = append(o.seen, kind+" "+outcome)
}
func (o *outcomes) LateResults(context.Context, int)    {}
func (o *outcomes) Purged(context.Context, int64, bool) {}
func (o *outcomes) Reconciled(context.Context, int)     {}

// Ensure every run of a job is counted and logged by its outcome, a run that panics too.
func TestEveryRunOfAJobIsObserved(t *testing.T) {
	t.Parallel()
	for outcome, work := range map[string]func(context.Context) error{
		"done":    func(context.Context) error { return nil },
		"again":   func(context.Context) error { return errors.New("no answer") },
		"snoozed": func(context.Context) error { return river.JobSnooze(time.Minute) },
		"panic":   func(context.Context) error { panic("a bug") },
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			o := &outcomes{}
			m := &observeJobs{observer: o, log: slog.New(slog.NewTextHandler(&log, nil))}
			func() {
				defer func() { require.Equal(t, outcome == "panic", recover() != nil, "a panic is River's to handle") }()
				_ = m.Work(t.Context(), &rivertype.JobRow{Kind: "charge-order", Attempt: 3}, work)
			}()
			require.Equal(t, []string{"charge-order " + outcome}, o.seen)
			require.Contains(t, log.String(), "operation=charge-order outcome="+outcome)
			require.Contains(t, log.String(), "attempt=3")
		})
	}
}
