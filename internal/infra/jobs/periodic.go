package jobs

import (
	"time"

	"github.com/riverqueue/river"
)

// every makes a periodic job. It also runs at every start of a leader, or workers that restart more often than the
// interval would never run it; that it is unique in its period keeps such restarts from piling it up.
func every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) {
			return args, &river.InsertOpts{
				Queue: maintenance, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByPeriod: interval},
			}
		},
		&river.PeriodicJobOpts{RunOnStart: true})
}
