package jobs

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/stretchr/testify/require"
)

// skews are how far this process's clock is ahead of the database's.
var skews = []time.Duration{30 * time.Hour, -30 * time.Hour}

// tolerance is how much time may pass between two looks at a clock.
const tolerance = 20 * time.Second

// Ensure a process with a wrong clock delays nothing and hurries nothing: jobs that it inserts are due at once, and its
// pauses are as long as they are meant to be.
func TestPausesAreTheDatabasesTime(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		for name, c := range map[string]struct {
			end         error
			state       string
			least, most time.Duration // of the pause
		}{
			"completed": {nil, "completed", 0, 0},
			"snoozed":   {river.JobSnooze(time.Hour), "scheduled", time.Hour, time.Hour},
			"failed":    {errors.New("no answer"), "available", time.Second / 2, time.Second},
		} {
			t.Run(fmt.Sprintf("%s %s", name, skew), func(t *testing.T) {
				t.Parallel()
				pool := open(t, skew)
				runs, _ := startWorker(t, pool, 1)
				id := insert(t, pool)
				next(t, runs, "the run").end <- c.end
				if c.state == "available" { // it is running again soon
					next(t, runs, "the next run").end <- nil
					c.state = "completed"
				}
				awaitJob(t, pool, id, `state = '`+c.state+`'`)
				const paused = `SELECT extract(epoch FROM scheduled_at - created_at)::float8 FROM river_job WHERE id = $1`
				pause := value[float64](t, pool, paused, id)
				require.Greater(t, pause, (c.least - tolerance).Seconds())
				require.Less(t, pause, (c.most + tolerance).Seconds())
				require.True(t, value[bool](t, pool, `SELECT coalesce(finalized_at, now()) BETWEEN created_at - interval '20s' AND now()
					AND coalesce((errors[1]->>'at')::timestamptz, now()) BETWEEN created_at - interval '20s' AND now()
					FROM river_job WHERE id = $1`, id))
			})
		}
	}
}

// Ensure a leader with a wrong clock rescues crashed jobs, and only those, at once, and that River, which compares the
// start of each run with the process's clock, sees it in that clock's time.
func TestRescueIsTheDatabasesTime(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			pool := open(t, skew)
			insert(t, pool)
			crashed := insert(t, pool)
			execute(t, pool, `UPDATE river_job SET state = 'running', attempt = 3, attempted_at = now() - interval '10 seconds'`)
			execute(t, pool, `UPDATE river_job SET attempted_at = now() - interval '10 minutes' WHERE id = $1`, crashed)
			exec := newDriver(pool, nil).GetExecutor()
			horizon := time.Now().Add(-5 * time.Minute)
			stuck, err := exec.JobGetStuck(t.Context(), &riverdriver.JobGetStuckParams{Max: 10, StuckHorizon: horizon})
			require.NoError(t, err)
			require.Len(t, stuck, 1)
			require.Equal(t, crashed, stuck[0].ID)
			require.WithinDuration(t, time.Now().Add(-10*time.Minute), *stuck[0].AttemptedAt, tolerance)

			_, err = exec.JobRescueMany(t.Context(), &riverdriver.JobRescueManyParams{
				ID: []int64{crashed}, Error: [][]byte{[]byte(`{}`)}, FinalizedAt: []*time.Time{nil},
				ScheduledAt: []time.Time{time.Now().Add(time.Hour)}, State: []string{"retryable"}, StuckHorizon: horizon,
			})
			require.NoError(t, err)
			require.True(t, value[bool](t, pool, `SELECT state = 'retryable' AND scheduled_at BETWEEN created_at AND now()
				FROM river_job WHERE id = $1`, crashed))
		})
	}
}

// Ensure a leader with a wrong clock makes jobs available when they are due, and tells River which ones are.
func TestSchedulingIsTheDatabasesTime(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			pool := open(t, skew)
			insert(t, pool)
			due := insert(t, pool)
			execute(t, pool, `UPDATE river_job SET state = 'retryable', scheduled_at = now() + interval '5 minutes'`)
			execute(t, pool, `UPDATE river_job SET scheduled_at = now() WHERE id = $1`, due)
			tx, err := newDriver(pool, nil).GetExecutor().Begin(t.Context())
			require.NoError(t, err)
			ahead := time.Now().Add(5 * time.Second)
			scheduled, err := tx.JobSchedule(t.Context(), &riverdriver.JobScheduleParams{Max: 10, Now: &ahead})
			require.NoError(t, err)
			require.NoError(t, tx.Commit(t.Context()))
			require.Len(t, scheduled, 1)
			require.Equal(t, due, scheduled[0].Job.ID)
			require.WithinDuration(t, time.Now(), scheduled[0].Job.ScheduledAt, tolerance)
		})
	}
}

// Ensure the periodic jobs of a leader with a wrong clock are due as soon as they are meant to be.
func TestInsertionByRiverIsTheDatabasesTime(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			pool := open(t, skew)
			client, err := river.NewClient(newDriver(pool, nil), &river.Config{})
			require.NoError(t, err)
			_, err = client.Insert(t.Context(), purgeKeysArgs{}, nil)
			require.NoError(t, err)
			_, err = client.InsertManyFast(t.Context(), []river.InsertManyParams{{Args: purgeKeysArgs{}, InsertOpts: &river.InsertOpts{
				ScheduledAt: time.Now().Add(time.Hour),
			}}})
			require.NoError(t, err)
			require.True(t, value[bool](t, pool, `SELECT bool_and(abs(extract(epoch FROM created_at - now())) < 20
				AND abs(extract(epoch FROM scheduled_at - now() - CASE state WHEN 'scheduled' THEN interval '1 hour' ELSE '0' END)) < 20)
				FROM river_job`))
		})
	}
}

// Ensure a leader with a wrong clock removes finished jobs and unused queues when their time is over, and no others.
func TestCleaningIsTheDatabasesTime(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			pool := open(t, skew)
			insert(t, pool)
			insert(t, pool)
			execute(t, pool, `UPDATE river_job SET state = 'completed', finalized_at = now() - interval '25 hours' * (id % 2)`)
			execute(t, pool, `INSERT INTO river_queue (name, metadata, created_at, updated_at)
				VALUES ('used', '{}', now(), now()), ('unused', '{}', now(), now() - interval '25 hours')`)
			exec, horizon := newDriver(pool, nil).GetExecutor(), time.Now().Add(-24*time.Hour)
			removed, err := exec.JobDeleteBefore(t.Context(), &riverdriver.JobDeleteBeforeParams{
				CompletedDoDelete: true, CompletedFinalizedAtHorizon: horizon, Max: 10,
			})
			require.NoError(t, err)
			require.Equal(t, 1, removed)
			queues, err := exec.QueueDeleteExpired(t.Context(), &riverdriver.QueueDeleteExpiredParams{Max: 10, UpdatedAtHorizon: horizon})
			require.NoError(t, err)
			require.Equal(t, []string{"unused"}, queues)
		})
	}
}
