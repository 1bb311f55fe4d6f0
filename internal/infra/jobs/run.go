package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

const (
	// keptErrors is how many of a job's last errors are kept: it may fail during a whole outage of the provider.
	keptErrors = 10
	// maxErrorText and maxTrace bound what one error stores, in bytes.
	maxErrorText = 500
	maxTrace     = 4000
	// runKey is the metadata key that passes the run's identity to the driver. It is not stored.
	runKey = "orders_run"
)

// run identifies one run of a job. The attempt number alone does not, because a snooze decrements it.
type run struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"` // when the database gave the job to this run
}

// identifyRun adds the run's identity to its results, because River passes only the job's id to the driver.
type identifyRun struct{ river.PluginDefaults }

// Work implements rivertype.WorkerMiddleware.
func (*identifyRun) Work(ctx context.Context, job *rivertype.JobRow, next func(context.Context) error) error {
	if err := river.MetadataSet(ctx, runKey, run{job.Attempt, *job.AttemptedAt}); err != nil {
		return fmt.Errorf("identify run: %w", err)
	}
	return next(ctx)
}

// lockRuns locks the jobs of some runs. It returns the time, the jobs that the runs still own, and the jobs that
// another run has taken over. Jobs that were already completed with their results are in neither list.
const lockRuns = `
SELECT clock_timestamp(), coalesce(array_agg(id) FILTER (WHERE own), '{}'), coalesce(array_agg(id) FILTER (WHERE NOT own), '{}')
FROM (
	SELECT j.id, j.attempt = r.attempt AND (r.at IS NULL OR j.attempted_at = r.at) AS own
	FROM river_job j JOIN unnest($1::bigint[], $2::int[], $3::timestamptz[]) AS r (id, attempt, at) ON j.id = r.id
	WHERE j.state = 'running' OR j.attempt <> r.attempt OR j.attempted_at <> r.at
	ORDER BY j.id FOR UPDATE OF j
) locked`

// setState stores the results of runs that still own their job. It returns the ids of the other jobs.
func setState(
	ctx context.Context, tx riverdriver.ExecutorTx, params *riverdriver.JobSetStateIfRunningManyParams,
) (jobs []*rivertype.JobRow, late []int64, err error) {
	results := resultsOf(params)
	var clock clock
	ids, attempts, starts := identities(results)
	var running []int64
	if err := tx.QueryRow(ctx, lockRuns, ids, attempts, starts).Scan(&clock.now, &running, &late); err != nil {
		return nil, nil, fmt.Errorf("lock jobs: %w", err)
	}
	own := slices.DeleteFunc(results, func(r result) bool { return !slices.Contains(running, r.id) })
	if len(own) == 0 {
		return nil, late, nil
	}
	if err := dropOldErrors(ctx, tx, failed(own)); err != nil {
		return nil, nil, err
	}
	jobs, err = tx.JobSetStateIfRunningMany(ctx, joined(own, clock, params.Schema))
	return jobs, late, err
}

// result is the new state of a job after a run.
type result struct {
	id          int64
	run         run // attempt zero: unknown
	attempt     *int
	failure     *rivertype.AttemptError
	finalizedAt *time.Time
	scheduledAt *time.Time
	metadata    []byte // nil: nothing to merge
	state       rivertype.JobState
}

func resultsOf(p *riverdriver.JobSetStateIfRunningManyParams) []result {
	results := make([]result, len(p.ID))
	for i, id := range p.ID {
		r := result{
			id: id, attempt: p.Attempt[i], finalizedAt: p.FinalizedAt[i], scheduledAt: p.ScheduledAt[i], state: p.State[i],
		}
		if p.MetadataDoMerge[i] {
			r.run, r.metadata = takeRun(p.MetadataUpdates[i])
		}
		if p.ErrData[i] != nil {
			r.failure = failureOf(p.ErrData[i])
			if r.run.Attempt == 0 { // no middleware has run, because the job's kind is unknown or its arguments cannot be decoded
				r.run.Attempt = r.failure.Attempt
			}
		}
		results[i] = r
	}
	return results
}

// takeRun removes the run from the updates of a job's metadata.
func takeRun(updates []byte) (r run, rest []byte) {
	var all map[string]json.RawMessage
	if json.Unmarshal(updates, &all) != nil || all[runKey] == nil || json.Unmarshal(all[runKey], &r) != nil {
		return run{}, updates
	}
	delete(all, runKey)
	if len(all) == 0 {
		return r, nil
	}
	rest, _ = json.Marshal(all) // the values come from JSON
	return r, rest
}

func failureOf(data []byte) *rivertype.AttemptError {
	var f rivertype.AttemptError
	if json.Unmarshal(data, &f) != nil {
		f.Error = string(data)
	}
	f.Error, f.Trace = cut(f.Error, maxErrorText), cut(f.Trace, maxTrace)
	return &f
}

// cut bounds a text in bytes and keeps it valid UTF-8, which PostgreSQL requires.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

func identities(results []result) (ids []int64, attempts []int, starts []*time.Time) {
	for _, r := range results {
		var start *time.Time
		if !r.run.At.IsZero() {
			start = &r.run.At
		}
		ids, attempts, starts = append(ids, r.id), append(attempts, r.run.Attempt), append(starts, start)
	}
	return ids, attempts, starts
}

func failed(results []result) (ids []int64) {
	for _, r := range results {
		if r.failure != nil {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// joined is the inverse of resultsOf, with times of the database's clock.
func joined(results []result, c clock, schema string) *riverdriver.JobSetStateIfRunningManyParams {
	p := &riverdriver.JobSetStateIfRunningManyParams{Schema: schema}
	for _, r := range results {
		var failure []byte
		if r.failure != nil {
			at := *r.failure
			at.At = c.database(at.At)
			failure, _ = json.Marshal(at) // texts, numbers and a time
		}
		p.ID, p.Attempt, p.State = append(p.ID, r.id), append(p.Attempt, r.attempt), append(p.State, r.state)
		p.ErrData = append(p.ErrData, failure)
		p.FinalizedAt = append(p.FinalizedAt, c.databaseOrNil(r.finalizedAt))
		p.ScheduledAt = append(p.ScheduledAt, c.databaseOrNil(r.scheduledAt))
		p.MetadataDoMerge = append(p.MetadataDoMerge, r.metadata != nil)
		p.MetadataUpdates = append(p.MetadataUpdates, r.metadata)
	}
	return p
}

// dropOldErrors makes room for one more error in each job.
func dropOldErrors(ctx context.Context, exec riverdriver.Executor, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	err := exec.Exec(ctx, `UPDATE river_job SET errors = errors[cardinality(errors) - $2 + 2:]
		WHERE id = ANY($1) AND cardinality(errors) >= $2`, ids, keptErrors)
	if err != nil {
		return fmt.Errorf("drop old errors: %w", err)
	}
	return nil
}
