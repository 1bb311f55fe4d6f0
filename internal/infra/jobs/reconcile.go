package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"example.com/orders/internal/app"
)

// ReconcileConfig is how often reconcile-payments runs, and its bounds.
type ReconcileConfig struct {
	Interval time.Duration // between two runs
	app.ReconcileLimits
}

type reconcilePaymentsArgs struct{}

// Kind implements river.JobArgs.
func (reconcilePaymentsArgs) Kind() string { return "reconcile-payments" }

type reconcilePayments struct {
	river.WorkerDefaults[reconcilePaymentsArgs]
	service  UseCases
	config   ReconcileConfig
	observer Observer
	log      *slog.Logger
}

// Work implements river.Worker.
func (w *reconcilePayments) Work(ctx context.Context, job *river.Job[reconcilePaymentsArgs]) error {
	r, err := w.service.ReconcilePayments(ctx, w.config.ReconcileLimits, completion(job.JobRow))
	w.observer.Reconciled(ctx, r.Enqueued)
	if r.Enqueued > 0 || r.Differed > 0 || r.Returned > 0 {
		w.log.WarnContext(ctx, "payments were reconciled", "enqueued", r.Enqueued, "compared", r.Compared,
			"differed", r.Differed, "returned", r.Returned)
	}
	return err
}
