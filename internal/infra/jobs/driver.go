package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// driver is River's driver for pgx with two additions. All timestamps that River stores or compares come from the
// database's clock, so that a process with a wrong clock neither delays jobs nor rescues jobs that are still running.
// And a run can only finish a job that it still owns: the late result of a rescued job is dropped.
type driver struct {
	*riverpgxv5.Driver
	late func(ctx context.Context, ids []int64) // called with the jobs whose late results were dropped
}

func newDriver(pool *pgxpool.Pool, late func(context.Context, []int64)) *driver {
	return &driver{riverpgxv5.New(pool), late}
}

// GetExecutor implements riverdriver.Driver.
func (d *driver) GetExecutor() riverdriver.Executor { return &executor{d.Driver.GetExecutor(), d} }

// UnwrapExecutor implements riverdriver.Driver.
func (d *driver) UnwrapExecutor(tx pgx.Tx) riverdriver.ExecutorTx {
	return d.inTx(d.Driver.UnwrapExecutor(tx))
}

// UnwrapTx implements riverdriver.Driver.
func (d *driver) UnwrapTx(tx riverdriver.ExecutorTx) pgx.Tx {
	return d.Driver.UnwrapTx(tx.(*executorTx).tx) //nolint:forcetypeassert // this driver makes no other type
}

func (d *driver) inTx(tx riverdriver.ExecutorTx) *executorTx { return &executorTx{executor{tx, d}, tx} }

// executor runs River's statements on a pool or in a transaction.
type executor struct {
	riverdriver.Executor
	driver *driver
}

// executorTx is an executor in a transaction.
type executorTx struct {
	executor
	tx riverdriver.ExecutorTx
}

// Commit implements riverdriver.ExecutorTx.
func (e *executorTx) Commit(ctx context.Context) error { return e.tx.Commit(ctx) }

// Rollback implements riverdriver.ExecutorTx.
func (e *executorTx) Rollback(ctx context.Context) error { return e.tx.Rollback(ctx) }

// Begin implements riverdriver.Executor.
func (e *executor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return e.driver.inTx(tx), nil
}

// JobSetStateIfRunningMany implements riverdriver.Executor. It skips jobs that another run has taken over.
func (e *executor) JobSetStateIfRunningMany(
	ctx context.Context, params *riverdriver.JobSetStateIfRunningManyParams,
) ([]*rivertype.JobRow, error) {
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // does nothing after the commit
	jobs, late, err := setState(ctx, tx, params)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, err
	}
	if len(late) > 0 {
		e.driver.late(ctx, late)
	}
	return jobs, nil
}

// JobGetStuck implements riverdriver.Executor. River compares the start of each run with the process's clock, so the
// result is in that clock's time.
func (e *executor) JobGetStuck(
	ctx context.Context, params *riverdriver.JobGetStuckParams,
) ([]*rivertype.JobRow, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return nil, err
	}
	asked := *params
	asked.StuckHorizon = clock.database(params.StuckHorizon)
	jobs, err := e.Executor.JobGetStuck(ctx, &asked)
	for _, job := range jobs {
		if job.AttemptedAt != nil {
			local := clock.process(*job.AttemptedAt)
			job.AttemptedAt = &local
		}
	}
	return jobs, err
}

// JobRescueMany implements riverdriver.Executor. The job of a crashed worker is due at once: it has already waited
// until it counted as crashed, so no backoff is added.
func (e *executor) JobRescueMany(ctx context.Context, params *riverdriver.JobRescueManyParams) (*struct{}, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return nil, err
	}
	asked := *params
	asked.StuckHorizon = clock.database(params.StuckHorizon)
	asked.FinalizedAt = clock.databaseAll(params.FinalizedAt)
	asked.ScheduledAt = make([]time.Time, len(params.ScheduledAt))
	for i, at := range params.ScheduledAt {
		asked.ScheduledAt[i] = at // of a job that is discarded: unchanged
		if params.State[i] == string(rivertype.JobStateRetryable) {
			asked.ScheduledAt[i] = clock.now
		}
	}
	if err := dropOldErrors(ctx, e.Executor, params.ID); err != nil {
		return nil, err
	}
	return e.Executor.JobRescueMany(ctx, &asked)
}

// JobSchedule implements riverdriver.Executor. River compares the due times with the process's clock to decide whether
// to wake the workers, so the result is in that clock's time.
func (e *executor) JobSchedule(
	ctx context.Context, params *riverdriver.JobScheduleParams,
) ([]*riverdriver.JobScheduleResult, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return nil, err
	}
	asked := *params
	asked.Now = clock.databaseOrNil(params.Now)
	results, err := e.Executor.JobSchedule(ctx, &asked)
	for _, result := range results {
		result.Job.ScheduledAt = clock.process(result.Job.ScheduledAt)
	}
	return results, err
}

// JobInsertFastMany implements riverdriver.Executor.
func (e *executor) JobInsertFastMany(
	ctx context.Context, params *riverdriver.JobInsertFastManyParams,
) ([]*riverdriver.JobInsertFastResult, error) {
	asked, err := e.insertParams(ctx, params)
	if err != nil {
		return nil, err
	}
	return e.Executor.JobInsertFastMany(ctx, asked)
}

// JobInsertFastManyNoReturning implements riverdriver.Executor.
func (e *executor) JobInsertFastManyNoReturning(
	ctx context.Context, params *riverdriver.JobInsertFastManyParams,
) (int, error) {
	asked, err := e.insertParams(ctx, params)
	if err != nil {
		return 0, err
	}
	return e.Executor.JobInsertFastManyNoReturning(ctx, asked)
}

// insertParams sets every timestamp of a job: River's driver would use the process's clock for unset ones.
func (e *executor) insertParams(
	ctx context.Context, params *riverdriver.JobInsertFastManyParams,
) (*riverdriver.JobInsertFastManyParams, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return nil, err
	}
	asked := &riverdriver.JobInsertFastManyParams{Schema: params.Schema}
	for _, job := range params.Jobs {
		copied := *job
		copied.CreatedAt, copied.ScheduledAt = &clock.now, &clock.now
		if job.ScheduledAt != nil {
			copied.ScheduledAt = clock.databaseOrNil(job.ScheduledAt)
		}
		asked.Jobs = append(asked.Jobs, &copied)
	}
	return asked, nil
}

// JobDeleteBefore implements riverdriver.Executor.
func (e *executor) JobDeleteBefore(ctx context.Context, params *riverdriver.JobDeleteBeforeParams) (int, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return 0, err
	}
	asked := *params
	asked.CancelledFinalizedAtHorizon = clock.database(params.CancelledFinalizedAtHorizon)
	asked.CompletedFinalizedAtHorizon = clock.database(params.CompletedFinalizedAtHorizon)
	asked.DiscardedFinalizedAtHorizon = clock.database(params.DiscardedFinalizedAtHorizon)
	return e.Executor.JobDeleteBefore(ctx, &asked)
}

// QueueDeleteExpired implements riverdriver.Executor.
func (e *executor) QueueDeleteExpired(
	ctx context.Context, params *riverdriver.QueueDeleteExpiredParams,
) ([]string, error) {
	clock, err := readClock(ctx, e.Executor)
	if err != nil {
		return nil, err
	}
	asked := *params
	asked.UpdatedAtHorizon = clock.database(params.UpdatedAtHorizon)
	return e.Executor.QueueDeleteExpired(ctx, &asked)
}

// clock translates between this process's time and the database's.
type clock struct{ now time.Time } // the database's time, just read

func readClock(ctx context.Context, exec riverdriver.Executor) (c clock, err error) {
	if err := exec.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&c.now); err != nil {
		return c, fmt.Errorf("read the database's clock: %w", err)
	}
	return c, nil
}

// database converts a time of this process's clock to the database's clock.
func (c clock) database(t time.Time) time.Time { return c.now.Add(time.Until(t)) }

// process converts a time of the database's clock to this process's clock.
func (c clock) process(t time.Time) time.Time { return time.Now().Add(t.Sub(c.now)) }

func (c clock) databaseOrNil(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := c.database(*t)
	return &at
}

func (c clock) databaseAll(times []*time.Time) []*time.Time {
	all := make([]*time.Time, len(times))
	for i, t := range times {
		all[i] = c.databaseOrNil(t)
	}
	return all
}
