package testkit

import (
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"
)

// The kinds of the periodic jobs.
const (
	JobPurge     = "purge-idempotency-keys"
	JobReconcile = "reconcile-payments"
)

// day is the interval of the periodic jobs in tests.
const day = 24 * time.Hour

// periodicJob is the arguments of a periodic job: none.
type periodicJob struct{ kind string }

// Kind implements river.JobArgs.
func (p periodicJob) Kind() string { return p.kind }

// Enqueue asks for a run of a periodic job, as an operator would.
func (s *Service) Enqueue(t testing.TB, kind string) (id int64) {
	t.Helper()
	return s.insert(t, kind, nil)
}

func (s *Service) insert(t testing.TB, kind string, opts *river.InsertOpts) (id int64) {
	t.Helper()
	client, err := river.NewClient(riverpgxv5.New(s.DB), &river.Config{Logger: Log()})
	require.NoError(t, err)
	inserted, err := client.Insert(t.Context(), periodicJob{kind}, opts)
	require.NoError(t, err)
	return inserted.Job.ID
}

// periodicJobsRan leaves what the runs of today and of tomorrow leave, so that the start of a worker brings none: a
// reconciliation beside a test's own steps would settle a payment that the test has stopped on its way.
func (s *Service) periodicJobsRan(t testing.TB) {
	t.Helper()
	for _, kind := range []string{JobPurge, JobReconcile} {
		for _, at := range []time.Time{time.Now(), time.Now().Add(day)} {
			s.insert(t, kind, &river.InsertOpts{ScheduledAt: at, Queue: "none", UniqueOpts: river.UniqueOpts{ByPeriod: day}})
		}
	}
	_, err := s.DB.Exec(t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE queue = 'none'`)
	require.NoError(t, err)
}

// PeriodicJobsDue makes the next start of a worker bring a run of each periodic job, as the first start of a day does.
func (s *Service) PeriodicJobsDue(t testing.TB) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `DELETE FROM river_job WHERE queue = 'none'`)
	require.NoError(t, err)
}
