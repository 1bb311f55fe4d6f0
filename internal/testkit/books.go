package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
)

// Stocked remembers, in the database, the units that a test put on a shelf (or took off, by adjust-stock): what
// CheckBooks starts from.
func (s *Service) Stocked(t testing.TB, tenant, sku string, units int64) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS test_stocked (tenant_id text, sku text, units bigint)`)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), `INSERT INTO test_stocked VALUES ($1, $2, $3)`, tenant, sku, units)
	require.NoError(t, err)
}

// CheckBooks checks what must hold at any moment: units on hand plus units in orders that were not cancelled are what
// was put on the shelf; no order was charged twice; and what the provider has charged and refunded for an order at rest
// is what the order says.
func CheckBooks(t testing.TB, s *Service) {
	t.Helper()
	checkStock(t, s)
	checkMoney(t, s)
	require.Zero(t, s.Count(t, `idempotency_keys WHERE state <> 'completed'`), "a claim without its result was committed")
	require.Zero(t, s.Count(t, `orders o LEFT JOIN payments p ON p.tenant_id = o.tenant_id AND p.order_id = o.id
		WHERE p.amount IS DISTINCT FROM o.total_amount`), "an order has no payment of its total")
}

func checkStock(t testing.TB, s *Service) {
	t.Helper()
	if s.Count(t, `pg_tables WHERE tablename = 'test_stocked'`) == 0 {
		return
	}
	rows, err := s.DB.Query(bounded(t), `
		SELECT k.sku, k.units, st.on_hand + coalesce(o.sold, 0)
		FROM (SELECT tenant_id, sku, sum(units)::bigint AS units FROM test_stocked GROUP BY 1, 2) k
		JOIN stock st USING (tenant_id, sku)
		LEFT JOIN (
			SELECT o.tenant_id, l.sku, sum(l.quantity)::bigint AS sold
			FROM orders o JOIN order_lines l ON l.tenant_id = o.tenant_id AND l.order_id = o.id
			WHERE o.status <> 'cancelled' GROUP BY 1, 2
		) o USING (tenant_id, sku)`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var sku string
		var put, accounted int64
		require.NoError(t, rows.Scan(&sku, &put, &accounted))
		require.Equal(t, put, accounted, "units of %s on hand and sold", sku)
	}
	require.NoError(t, rows.Err())
}

// provided is what the provider's ledger says of one order.
type provided struct {
	charges           int
	charged, refunded int64
}

func ledgerByOrder(l sandbox.Ledger) map[string]provided {
	orders := map[string]provided{}
	for _, c := range l.Charges {
		if c.Status == "succeeded" {
			p := orders[c.OrderID]
			p.charges++
			p.charged += c.Amount
			orders[c.OrderID] = p
		}
	}
	for _, r := range l.Refunds {
		if r.Status == "succeeded" {
			p := orders[r.OrderID]
			p.refunded += r.Amount
			orders[r.OrderID] = p
		}
	}
	return orders
}

func checkMoney(t testing.TB, s *Service) {
	t.Helper()
	ledger := ledgerByOrder(s.Sandbox.Ledger())
	rows, err := s.DB.Query(bounded(t), `
		SELECT p.order_id::text, o.status, p.status, p.amount,
			coalesce((SELECT sum(amount) FROM refunds r WHERE r.tenant_id = p.tenant_id AND r.order_id = p.order_id
				AND r.status = 'succeeded'), 0)::bigint,
			EXISTS (SELECT FROM refunds r WHERE r.tenant_id = p.tenant_id AND r.order_id = p.order_id AND r.status = 'pending')
		FROM payments p JOIN orders o ON o.tenant_id = p.tenant_id AND o.id = p.order_id`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, order, payment string
		var amount, refunded int64
		var refunding bool
		require.NoError(t, rows.Scan(&id, &order, &payment, &amount, &refunded, &refunding))
		p := ledger[id]
		require.LessOrEqual(t, p.charges, 1, "order %s was charged more than once", id)
		require.LessOrEqual(t, p.refunded, p.charged, "order %s got back more than it paid", id)
		switch payment {
		case "succeeded":
			require.Equal(t, amount, p.charged, "charge of order %s", id)
			if !refunding {
				require.Equal(t, refunded, p.refunded, "refunds of order %s", id)
			}
		case "failed", "canceled":
			require.Zero(t, p.charged, "order %s is %s and was charged", id, payment)
		}
		require.False(t, order == "shipped" && payment != "succeeded", "order %s left unpaid", id)
		require.False(t, payment == "failed" && order == "open", "order %s is open and its payment failed", id)
	}
	require.NoError(t, rows.Err())
}
