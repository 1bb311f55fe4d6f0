package testkit

import (
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
)

// Stocked remembers, in the database, the units that a test put on a shelf (or took off, by adjust-stock): what
// CheckBooks starts from.
func (s *Service) Stocked(t TB, tenant, sku string, units int64) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS test_stocked (tenant_id text, sku text, units bigint)`)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), `INSERT INTO test_stocked VALUES ($1, $2, $3)`, tenant, sku, units)
	require.NoError(t, err)
}

// CheckBooks checks what must hold at any moment: units on hand plus units in orders that were not cancelled are what
// was put on the shelf; no order was charged twice, but for charges that are noted as unmatched; and what the provider has
// charged and refunded for an order at rest is what the books say, id by id.
func CheckBooks(t TB, s *Service) {
	t.Helper()
	checkStock(t, s)
	checkMoney(t, s)
	require.Zero(t, s.Count(t, `idempotency_keys WHERE state <> 'completed'`), "a claim without its result was committed")
	require.Zero(t, s.Count(t, `orders o LEFT JOIN payments p ON p.tenant_id = o.tenant_id AND p.order_id = o.id
		WHERE p.amount IS DISTINCT FROM o.total_amount`), "an order has no payment of its total")
}

func checkStock(t TB, s *Service) {
	t.Helper()
	if s.Count(t, `pg_tables WHERE tablename = 'test_stocked'`) == 0 {
		return
	}
	rows, _ := s.DB.Query(bounded(t), `SELECT tenant_id || ' ' || sku, sum(units)::bigint FROM test_stocked GROUP BY 1`)
	put := map[string]int64{}
	var sku string
	var units int64
	_, err := pgx.ForEachRow(rows, []any{&sku, &units}, func() error { put[sku] = units; return nil })
	require.NoError(t, err)
	accounted := s.Accounted(t)
	for sku, units := range put {
		require.Equal(t, units, accounted[sku], "units of %s on hand and sold", sku)
	}
}

// Accounted is the units on hand and in orders that were not cancelled, by tenant and sku, such as "default TEA-001".
func (s *Service) Accounted(t TB) map[string]int64 {
	t.Helper()
	rows, _ := s.DB.Query(bounded(t), `
		SELECT tenant_id || ' ' || sku, st.on_hand + coalesce(o.sold, 0)
		FROM stock st LEFT JOIN (
			SELECT o.tenant_id, l.sku, sum(l.quantity)::bigint AS sold
			FROM orders o JOIN order_lines l ON l.tenant_id = o.tenant_id AND l.order_id = o.id
			WHERE o.status <> 'cancelled' GROUP BY 1, 2
		) o USING (tenant_id, sku)`)
	accounted := map[string]int64{}
	var sku string
	var units int64
	_, err := pgx.ForEachRow(rows, []any{&sku, &units}, func() error { accounted[sku] = units; return nil })
	require.NoError(t, err)
	return accounted
}

// provided is what the provider's ledger says of one order: its charges that succeeded, by intent, and its refunds that
// succeeded, by id.
type provided struct{ charges, refunds map[string]int64 }

func ledgerByOrder(l sandbox.Ledger) map[string]provided {
	orders := map[string]provided{}
	of := func(order string) provided {
		if _, ok := orders[order]; !ok {
			orders[order] = provided{map[string]int64{}, map[string]int64{}}
		}
		return orders[order]
	}
	for _, c := range l.Charges {
		if c.Status == "succeeded" {
			of(c.OrderID).charges[c.ID] = c.Amount
		}
	}
	for _, r := range l.Refunds {
		if r.Status == "succeeded" {
			of(r.OrderID).refunds[r.ID] = r.Amount
		}
	}
	return orders
}

func sum(amounts map[string]int64) (total int64) {
	for _, amount := range amounts {
		total += amount
	}
	return total
}

// without returns amounts less those of ids, each of which must have been there: the ledger has what the books explain.
func without(t TB, amounts map[string]int64, ids ...string) map[string]int64 {
	t.Helper()
	left := maps.Clone(amounts)
	for _, id := range ids {
		require.Contains(t, left, id, "the books have it and the provider does not")
		delete(left, id)
	}
	return left
}

// books is what the service says of the money of one order.
type books struct {
	id, order, payment, intent string
	amount, refunded           int64
	refunding                  bool
	unmatched, returned        []string // charges that no payment accounts for, and the refunds that gave them back
	refunds                    []string // the provider's ids of the refunds that succeeded
}

func checkMoney(t TB, s *Service) {
	t.Helper()
	ledger := ledgerByOrder(s.Sandbox.Ledger())
	rows, _ := s.DB.Query(bounded(t), `
		SELECT p.order_id::text, o.status, p.status, p.charge_id, p.amount, coalesce(r.refunded, 0)::bigint,
			coalesce(r.refunding, false), coalesce(u.charges, '{}'), coalesce(u.refunds, '{}'), coalesce(r.ids, '{}')
		FROM payments p JOIN orders o ON o.tenant_id = p.tenant_id AND o.id = p.order_id
		LEFT JOIN (
			SELECT tenant_id, order_id, sum(amount) FILTER (WHERE status = 'succeeded') AS refunded,
				bool_or(status = 'pending') AS refunding,
				array_agg(provider_id) FILTER (WHERE status = 'succeeded' AND provider_id <> '') AS ids
			FROM refunds GROUP BY 1, 2
		) r ON r.tenant_id = p.tenant_id AND r.order_id = p.order_id
		LEFT JOIN (
			SELECT tenant_id, order_id, array_agg(intent_id) AS charges,
				array_agg(refund_id) FILTER (WHERE refund_id <> '') AS refunds
			FROM unmatched_charges GROUP BY 1, 2
		) u ON u.tenant_id = p.tenant_id AND u.order_id = p.order_id`)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b books, err error) {
		err = row.Scan(&b.id, &b.order, &b.payment, &b.intent, &b.amount, &b.refunded, &b.refunding, &b.unmatched,
			&b.returned, &b.refunds)
		return b, err
	})
	require.NoError(t, err)
	for _, b := range all {
		b.check(t, ledger[b.id])
	}
}

// check compares the books of one order with what the provider holds of it.
func (b books) check(t TB, p provided) {
	t.Helper()
	require.LessOrEqual(t, sum(p.refunds), sum(p.charges), "order %s got back more than it paid", b.id)
	charges, refunds := without(t, p.charges, b.unmatched...), without(t, p.refunds, b.returned...)
	require.LessOrEqual(t, len(charges), 1, "order %s was charged more than once", b.id)
	switch b.payment {
	case "succeeded":
		require.Equal(t, map[string]int64{b.intent: b.amount}, charges, "charge of order %s", b.id)
		without(t, refunds, b.refunds...)
		if !b.refunding {
			require.Equal(t, b.refunded, sum(refunds), "refunds of order %s", b.id)
		}
	case "failed", "canceled":
		require.Empty(t, charges, "order %s is %s and was charged", b.id, b.payment)
	}
	require.False(t, b.order == "shipped" && b.payment != "succeeded", "order %s left unpaid", b.id)
	require.False(t, b.payment == "failed" && b.order == "open", "order %s is open and its payment failed", b.id)
}

// CheckRest checks what must hold once nothing is under way any more, beyond CheckBooks: every payment and refund is
// decided or has a live job, and every charge of this service at the provider is in the books.
func CheckRest(t TB, s *Service) {
	t.Helper()
	const alive = `EXISTS (SELECT FROM river_job j WHERE j.args->>'order_id' = p.order_id::text
		AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`
	require.Zero(t, s.Count(t, `payments p WHERE status IN ('pending', 'unresolved') AND NOT `+alive))
	require.Zero(t, s.Count(t, `refunds p WHERE status = 'pending' AND NOT `+alive))
	for _, c := range s.Sandbox.Ledger().Charges {
		if c.Status == "succeeded" && c.TenantID != "" {
			require.Equal(t, 1, s.Count(t, `(SELECT charge_id FROM payments UNION ALL SELECT intent_id FROM unmatched_charges)
				AS known (id) WHERE id = $1`, c.ID), "books of charge %s of order %s", c.ID, c.OrderID)
		}
	}
}
