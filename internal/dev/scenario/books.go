package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/testkit"
)

// Balance checks that what was charged, refunded and sold adds up, once nothing is on its way any more.
func (r *Run) Balance(ctx context.Context) { r.do(ctx, balance) }

func balance(r *Run) {
	r.must(r.Rest(r.ctx))
	testkit.CheckBooks(r, r.Service.Service)
	testkit.CheckRest(r, r.Service.Service)
	r.check(true, "%d orders: charged less refunded is what each of them says, in the books and at the provider", r.orders())
	equal(r, 0, r.Count(r, `orders o JOIN payments p ON p.tenant_id = o.tenant_id AND p.order_id = o.id
		WHERE o.status = 'cancelled' AND p.status = 'succeeded' AND p.amount <> (SELECT coalesce(sum(f.amount), 0) FROM refunds f
			WHERE f.tenant_id = p.tenant_id AND f.order_id = p.order_id AND f.status = 'succeeded')`),
		"no order that was cancelled has kept its money")
}

// books is balance, and the stock of a tour, which has put 30 lamps on the shelf.
func books(r *Run) {
	balance(r)
	accounted := r.Accounted(r)
	for sku, put := range map[string]int64{tea: 100_000, mug: 100_000, lamp: 30} {
		equal(r, put, accounted["default "+sku], "%s: what is on the shelf and what was sold are the %d that were put there", sku, put)
	}
}

// readMetrics shows what a tour has left at /metrics of the API and of the worker, and compares it with what the callers, the
// database and the provider know. told is what all callers were told.
func readMetrics(r *Run, told []Exchange) {
	r.must(r.Rest(r.ctx))
	api := testkit.ReadMetrics(r, r.Ops)
	worker := testkit.ReadMetrics(r, must2(r.Worker.OpsURL(r.ctx))(r))
	show := func(of testkit.Metrics, name string, labels ...string) int {
		value := of.Value(name, labels...)
		r.say("metrics", "%s%s %g", name, selector(labels), value)
		return int(value)
	}
	const requests = "orders_request_duration_seconds_count"
	placed := show(api, requests, "operation", "place-order", "code", "ok")
	replays := show(api, "orders_idempotent_replays_total", "operation", "place-order")
	equal(r, r.orders(), placed-replays, "orders accepted, less the answers that were given again, are the orders of the database")
	for _, code := range []openapi.ProblemCode{
		openapi.ProblemCodeVersionConflict, openapi.ProblemCodeIdempotencyKeyReused, openapi.ProblemCodeInsufficientStock,
	} {
		n := count(told, withCode(code))
		r.check(show(api, requests, "code", string(code)) == n && n > 0, "as often as callers were told: %d", n)
	}
	r.check(show(api, "orders_idempotency_key_wait_seconds_count", "outcome", "turn") > 0,
		"duplicates waited for the one that worked, and not in vain")
	equal(r, 0, show(api, requests, "code", string(openapi.ProblemCodeInternalError)), "no bug was met")

	const findings = "orders_payment_findings_total"
	equal(r, 1, show(worker, findings, "kind", "charge_declined"), "one card was declined")
	equal(r, 1, show(worker, findings, "kind", "refund_failed_late"), "one refund failed after it had succeeded")
	equal(r, 0, show(worker, findings, "kind", "second_charge")+show(worker, findings, "kind", "mismatch"),
		"no order was charged twice, and no answer was about something else")
	equal(r, 0, show(worker, "orders_payments_open")+show(worker, "orders_refunds_open")+show(worker, "orders_outbox_oldest_age_seconds"),
		"nothing waits: the outbox is empty, no payment and no refund is open")
}

// selector is pairs of label and value as Prometheus writes them.
func selector(labels []string) string {
	var pairs []string
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}
