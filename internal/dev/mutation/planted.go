package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// planted is a fault of what PostgreSQL decides, where an operator replaced at random tells little: text that becomes another
// one, and the test that finds it.
type planted struct {
	fault, file, was, is string
	pkg, test            string
}

const (
	store  = "internal/infra/postgres/"
	stored = "./internal/infra/postgres"
	whole  = "./internal/e2e"
)

var faults = []planted{
	{
		"an expired record is replayed", store + "idempotency.go", " AND expires_at > now()", "",
		whole, "TestIdempotencyAnExpiredRecordIsReplaced",
	},
	{
		"a live record is replaced", store + "idempotency.go", "\nWHERE k.expires_at <= $9", "",
		stored, "TestTheIndexAdmitsOneRequestWithoutTheTurn",
	},
	{
		"a key of another actor is found", store + "idempotency.go", "actor_id = $2 AND operation = $3", "$2 <> '' AND operation = $3",
		whole, "TestIdempotencyTheSameKeyOfAnotherScopeIsAnotherKey",
	},
	{
		"a key that another transaction completes is a fault", store + "idempotency.go", "missed: errKeyBusy, ", "",
		stored, "TestTheIndexAdmitsOneRequestWithoutTheTurn",
	},
	{
		"a record expires at once", store + "idempotency.go", "t.Now().Add(retention)", "t.Now().Add(min(retention, time.Microsecond))",
		whole, "TestIdempotencyALostAnswerIsReplayed",
	},
	{
		"waiters are not told of an answer", store + "gate.go", "close(t.done)", "",
		stored, "TestGateOpensOnceARequestIsAnswered",
	},
	{
		"the gate keeps every key", store + "gate.go", "delete(g.keys, scope)", "",
		stored, "TestGateForgetsWhoeverLeaves",
	},
	{
		"a COMMIT ends with its caller", store + "store.go", "(context.WithoutCancel(ctx), t.store", "(ctx, t.store",
		whole, "TestIdempotencyAClientThatLeavesDuringTheCommitDoesNotAbortIt",
	},
	{
		"a COMMIT is sent for a caller that has gone", store + "store.go", "errors.Join(ctx.Err(), t.early)", "t.early",
		stored, "TestACallerThatHasGoneCommitsNothing",
	},
	{
		"a lost COMMIT is called undone", store + "store.go", `"%w: %w", app.ErrOutcomeUnknown`, `"%w: %w", app.ErrTryAgain`,
		whole, "TestIdempotencyALostCommitReplyIsAnUnknownOutcome",
	},
	{
		"a ROLLBACK is taken for a COMMIT", store + "session.go", `tag.String() != "COMMIT"`, `tag.String() == ""`,
		stored, "TestAnErrorThatWasNotHeededIsNoCommit",
	},
	{
		"a transaction that meets another is not run again", store + "store.go", "try == maxTries", "try == 1",
		whole, "TestIdempotencyAnUndoneTransactionRunsAgain",
	},
	{
		"an order is saved without a compare", store + "orders.go", "AND id = $2 AND version = $3", "AND id = $2 AND version >= 0",
		stored, "TestEverySaveComparesTheVersion",
	},
	{
		"an order is read without a lock", store + "orders.go", "AND id = $2 FOR UPDATE", "AND id = $2",
		stored, "TestLoadsForAChangeLockTheRow",
	},
	{
		"a payment is saved without a compare", store + "payments.go", "AND order_id = $2 AND version = $3", "AND order_id = $2 AND version >= 0",
		stored, "TestEverySaveComparesTheVersion",
	},
	{
		"a refund keeps its status", store + "payments.go", "SET status = excluded.status, provider_id", "SET provider_id",
		whole, "TestRefundDeclinedFreesTheBalance",
	},
	{
		"a product of another tenant is for sale", store + "catalogue.go", "selectProduct+` WHERE tenant_id = $1 AND sku = $2`,\n\t\t\teach", "selectProduct+` WHERE $1 <> '' AND sku = $2`,\n\t\t\teach",
		whole, "TestConflictPricesAreThoseOfTheTenant",
	},
	{
		"the purge takes the newest", store + "purge.go", "ORDER BY expires_at LIMIT $2 FOR UPDATE", "ORDER BY expires_at DESC LIMIT $2 FOR UPDATE",
		whole, "TestPurgeRemovesOnlyWhatHasExpiredOldestFirst",
	},
	{
		"the purge takes what lives", store + "purge.go", "AND expires_at <= now() ORDER BY", "ORDER BY",
		whole, "TestPurgeRemovesOnlyWhatHasExpiredOldestFirst",
	},
	{
		"an event counts each time", store + "reconcile.go", "ON CONFLICT (tenant_id, event_id) DO NOTHING", "ON CONFLICT (tenant_id, event_id) DO UPDATE SET type = excluded.type",
		whole, "TestEventsDeliveredThreeTimesLeaveOneJob",
	},
	{
		"a watermark keeps its page", store + "reconcile.go", "after_id = excluded.after_id, updated_at", "updated_at",
		whole, "TestReconcileGoesOnPageByPage",
	},
	{
		"a job that runs is no live job", "internal/infra/outbox/orphans.go", "'retryable', 'running', 'scheduled'", "'retryable', 'scheduled'",
		whole, "TestReconcileLeavesLiveJobsAlone",
	},
	{
		"two reconciliations go on at once", "internal/infra/outbox/orphans.go", "tx.Exec(ctx, oneAtATime)", "tx.Exec(ctx, oneAtATime[:6]+` 1`)",
		whole, "TestReconcileTakeTurns",
	},
	{
		"a worker takes a job of a newer release", "internal/infra/outbox/jobs.go", "t.Schema > SchemaVersion", "t.Schema < 0",
		whole, "TestPaymentJobOfANewerReleaseStays",
	},
	{
		"a late run stores its result", "internal/infra/jobs/run.go", "j.attempt = r.attempt AND (r.at IS NULL OR j.attempted_at = r.at) AS own", "true AS own",
		"./internal/infra/jobs", "TestLateResultIsDropped",
	},
}

// findPlanted plants each fault and runs the test that is to find it. It returns how many were found, and tells of the others.
func findPlanted(ctx context.Context, out io.Writer) (found int, err error) {
	for _, f := range faults {
		source, err := os.ReadFile(f.file)
		if err != nil {
			return found, fmt.Errorf("read source: %w", err)
		}
		at := strings.Index(string(source), f.was)
		if strings.Count(string(source), f.was) != 1 {
			return found, fmt.Errorf("%s: %q does not stand there once: %s", f.file, f.was, f.fault)
		}
		m := mutant{file: f.file, from: at, to: at + len(f.was), is: f.is}
		o, err := work{m, [][]string{{f.pkg, "-run", "^" + f.test + "$"}}}.try(ctx)
		if err != nil {
			return found, err
		}
		if o == killed {
			found++
			continue
		}
		fmt.Fprintf(out, "NOT FOUND: %s: %s by %s\n", f.fault, o, f.test)
	}
	fmt.Fprintf(out, "%d of %d planted faults found\n", found, len(faults))
	return found, nil
}
