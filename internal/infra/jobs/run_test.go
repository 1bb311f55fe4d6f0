package jobs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// takeOver makes another run of the job begin while run has it, as the rescue of a frozen worker does.
func takeOver(t *testing.T, pool *pgxpool.Pool, id int64, runs <-chan chargeRun) chargeRun {
	t.Helper()
	execute(t, pool, `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE id = $1`, id)
	return next(t, runs, "the second run")
}

// snapshot is a job row as text, to compare.
const snapshot = `SELECT river_job::text FROM river_job WHERE id = $1`

// Ensure a run that ends after another run has taken its job over leaves the job alone, however it ends, and whether
// the other run is another worker's or its own worker's.
func TestLateResultIsDropped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{
		"completed": nil,
		"failed":    errors.New("no answer"),
		"snoozed":   river.JobSnooze(time.Hour),
		"cancelled": river.JobCancel(errors.New("no such job")),
	} {
		for _, same := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s same worker %t", name, same), func(t *testing.T) {
				t.Parallel()
				pool := open(t, 0)
				id := insert(t, pool)
				firstRuns, late := startWorker(t, pool, map[bool]int{false: 1, true: 2}[same])
				first := next(t, firstRuns, "the first run")
				secondRuns := firstRuns
				if !same {
					secondRuns, _ = startWorker(t, pool, 1)
				}
				second := takeOver(t, pool, id, secondRuns)
				before := value[string](t, pool, snapshot, id)
				first.end <- end
				require.Equal(t, 1, next(t, late, "the late result"))
				require.Equal(t, before, value[string](t, pool, snapshot, id))
				second.end <- nil
				awaitJob(t, pool, id, `state = 'completed' AND attempt = 2`)
				require.Empty(t, late)
				require.Equal(t, "{}", value[string](t, pool, `SELECT metadata::text FROM river_job WHERE id = $1`, id))
			})
		}
	}
}

// Ensure a run cannot record its result when its job is not its own any more: the transaction fails.
func TestResultOfALostJobIsRolledBack(t *testing.T) {
	t.Parallel()
	pool := open(t, 0)
	id := insert(t, pool)
	runs, _ := startWorker(t, pool, 2)
	first := next(t, runs, "the first run")
	complete := func(r chargeRun) error {
		return inTx(t, pool, r.done)
	}

	execute(t, pool, `UPDATE river_job SET state = 'retryable', scheduled_at = now() + interval '1 day' WHERE id = $1`, id)
	err := complete(first)
	require.ErrorIs(t, err, errLost)
	require.NotErrorIs(t, err, app.ErrOutcomeUnknown, "PostgreSQL has answered that nothing was committed")

	second := takeOver(t, pool, id, runs)
	before := value[string](t, pool, snapshot, id)
	require.ErrorIs(t, complete(first), errLost)
	require.Equal(t, before, value[string](t, pool, snapshot, id))
	require.NoError(t, complete(second))
	require.Equal(t, "completed", value[string](t, pool, `SELECT state::text FROM river_job WHERE id = $1`, id))
	first.end <- errors.New("lost")
	second.end <- nil
}

// Ensure the row of a job that is completed with its result is the one that River's completion leaves, but for its id and its
// times. A version of River that completes otherwise fails here.
func TestCompletedRowIsRivers(t *testing.T) {
	t.Parallel()
	pool := open(t, 0)
	rivers, ours := insert(t, pool), insert(t, pool)
	runs, _ := startWorker(t, pool, 1)
	next(t, runs, "the run that River completes").end <- nil
	run := next(t, runs, "the run that completes with its result")
	require.NoError(t, inTx(t, pool, run.done))
	run.end <- nil
	awaitJob(t, pool, rivers, `state = 'completed'`)
	const row = `SELECT to_jsonb(j) - '{id,args,created_at,scheduled_at,attempted_at,finalized_at}'::text[] FROM river_job j WHERE id = $1`
	require.Equal(t, value[map[string]any](t, pool, row, rivers), value[map[string]any](t, pool, row, ours))
	require.True(t, value[bool](t, pool, `SELECT finalized_at BETWEEN attempted_at AND now() FROM river_job WHERE id = $1`, ours))
}

// Ensure a job keeps its last errors only, each with a bounded text, however often it fails, and that a rescue does not
// add to them.
func TestErrorsOfAJobAreBounded(t *testing.T) {
	t.Parallel()
	pool := open(t, 0)
	id := insert(t, pool)
	exec := newDriver(pool, nil).GetExecutor()
	for attempt := 1; attempt <= keptErrors+5; attempt++ {
		got, err := exec.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{
			ClientID: "test", MaxAttemptedBy: 100, MaxToLock: 1, Queue: river.QueueDefault,
		})
		require.NoError(t, err)
		require.Len(t, got.Jobs, 1)
		failure := fmt.Sprintf(`{"at":"2026-11-29T12:00:00Z","attempt":%d,"error":%q}`, attempt, strings.Repeat("ü", 1000))
		_, err = exec.JobSetStateIfRunningMany(t.Context(), many(
			riverdriver.JobSetStateErrorAvailable(id, time.Now().Add(-time.Second), []byte(failure), nil)))
		require.NoError(t, err)
	}
	const summary = `SELECT array_agg((e->>'attempt')::int) FROM river_job, unnest(errors) e WHERE id = $1`
	require.Equal(t, []int{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, value[[]int](t, pool, summary, id))
	require.LessOrEqual(t, value[int](t, pool, `SELECT max(octet_length(e->>'error')) FROM river_job, unnest(errors) e`), maxErrorText)

	execute(t, pool, `UPDATE river_job SET state = 'running', attempted_at = now() - interval '2 hours'`)
	_, err := exec.JobRescueMany(t.Context(), &riverdriver.JobRescueManyParams{
		ID: []int64{id}, Error: [][]byte{[]byte(`{"attempt":16}`)}, FinalizedAt: []*time.Time{nil},
		ScheduledAt: []time.Time{time.Now()}, State: []string{"retryable"}, StuckHorizon: time.Now().Add(-time.Hour),
	})
	require.NoError(t, err)
	require.Equal(t, []int{7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, value[[]int](t, pool, summary, id))
}

// many is the parameters of one result, as River's completer passes them on.
func many(p *riverdriver.JobSetStateIfRunningParams) *riverdriver.JobSetStateIfRunningManyParams {
	return &riverdriver.JobSetStateIfRunningManyParams{
		ID: []int64{p.ID}, Attempt: []*int{p.Attempt}, ErrData: [][]byte{p.ErrData}, FinalizedAt: []*time.Time{p.FinalizedAt},
		MetadataDoMerge: []bool{p.MetadataDoMerge}, MetadataUpdates: [][]byte{p.MetadataUpdates},
		ScheduledAt: []*time.Time{p.ScheduledAt}, State: []rivertype.JobState{p.State},
	}
}

// Ensure a pause is as long as the attempt says, whatever is left of the job's errors.
func TestBackoffGrowsWithTheAttempt(t *testing.T) {
	t.Parallel()
	for attempt, most := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 11: retryMost, 5000: retryMost,
	} {
		at := backoff{}.NextRetry(&rivertype.JobRow{Attempt: attempt, Errors: make([]rivertype.AttemptError, 10)})
		require.InDelta(t, most.Seconds()*3/4, time.Until(at).Seconds(), most.Seconds()/4+0.1, "attempt %d", attempt)
	}
}
