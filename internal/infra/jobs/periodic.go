package jobs

import (
	"time"

	"github.com/riverqueue/river"
)

// every makes a periodic job. It also runs when a leader starts, because workers that restart more often than the
// interval would otherwise never run it. The job is unique in its period, so restarts do not pile it up.
func every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) {
			return args, &river.InsertOpts{
				Queue: maintenance, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByPeriod: interval},
			}
		},
		&river.PeriodicJobOpts{RunOnStart: true})
}
