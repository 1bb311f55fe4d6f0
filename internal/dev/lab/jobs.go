package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// job is one row of the outbox.
type job struct {
	ID                   int64
	Kind, State          string
	Attempt              int
	Parent               string // the trace context of what enqueued it
	Created              time.Time
	Attempted, Finalized *time.Time // of the latest run; nil: not yet
	LastError            string
}

const selectJobs = `
SELECT id, kind, state::text, attempt, coalesce(metadata->>'traceparent', ''), created_at, attempted_at, finalized_at,
	coalesce(errors[cardinality(errors)]->>'error', '')
FROM river_job WHERE args ? 'order_id' AND created_at >= $1 ORDER BY id`

// readJobs reads the jobs that the run has enqueued.
func (r *run) readJobs(ctx context.Context) {
	r.mu.Lock()
	service, began := r.service, r.began
	r.mu.Unlock()
	if service == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	rows, _ := service.DB.Query(ctx, selectJobs, began)
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[job])
	if err != nil {
		return // the time line shows what was read before
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = jobs
}

// jobItems shows one row of the outbox, and its way to the worker.
func (b *builder) jobItems(j job) []item {
	_, after, _ := strings.Cut(j.Parent, "-")
	traceID, after, _ := strings.Cut(after, "-")
	parent, _, _ := strings.Cut(after, "-")
	end := time.Time{}
	if j.Finalized != nil {
		end = *j.Finalized
	}
	row := item{
		ID: fmt.Sprintf("job-%d", j.ID), Kind: kindSpan, Lane: laneOutbox, Name: j.Kind, Start: b.micros(j.Created),
		End: b.micros(end), OK: j.State != "discarded" && j.State != "cancelled", Parent: parent,
		Detail: []detail{
			{"job", fmt.Sprint(j.ID)}, {"state", j.State}, {"attempts", fmt.Sprint(j.Attempt)}, {"last error", j.LastError},
		},
	}
	b.shown[row.ID] = true
	items := []item{row}
	for _, work := range b.children[parent] {
		if work.Trace != traceID || work.Name != workPrefix+j.Kind {
			continue
		}
		taken := item{
			ID: row.ID + "-" + work.ID, Kind: kindMessage, Lane: laneOutbox, To: laneWorker, Name: j.Kind, OK: true,
			Start: row.Start, End: b.micros(work.Start), Parent: row.ID, Detail: []detail{{"job", fmt.Sprint(j.ID)}},
		}
		if len(items) > 1 { // a later run of it; when the job came due is not known any more
			taken.Start = taken.End
		}
		items = append(items, taken)
	}
	return items
}
