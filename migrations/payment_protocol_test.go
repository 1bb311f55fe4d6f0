package migrations

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// placed is a database with an order, its pending payment and a pending refund, as an old API stores them.
func placed(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))
	for _, sql := range []string{
		`INSERT INTO orders (tenant_id, id, customer_id, status, currency, total_amount, ship_name, ship_line1, ship_line2, ship_city,
			ship_postal_code, ship_country, created_at, updated_at, version)
		VALUES ('t', '01a2299d-f76c-7627-b569-52ba45123348', 'alice', 'open', 'EUR', 100, '', '', '', '', '', 'DE', now(), now(), 1)`,
		`INSERT INTO payments (tenant_id, order_id, status, amount, currency, payment_method, charge_id, created_at, updated_at, version)
		SELECT tenant_id, id, 'pending', total_amount, currency, 'pm', '', now(), now(), 1 FROM orders`,
		`INSERT INTO refunds (tenant_id, order_id, id, amount, status, reason, created_at)
		SELECT tenant_id, order_id, order_id, 1, 'pending', '', now() FROM payments`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return pool
}

// Ensure a worker of the release before cannot note that it is about to ask the provider once a worker of this release
// has begun the same charge or refund, and that it can before.
func TestAnOldWorkerCannotBeginWhatANewOneHas(t *testing.T) {
	t.Parallel()
	const oldCharge, oldRefund = `UPDATE payments SET attempted_at = now()`, `UPDATE refunds SET attempted_at = now()`
	pool := placed(t)
	for _, sql := range []string{oldCharge, oldRefund} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	pool = placed(t)
	for _, c := range []struct{ begun, old, fence string }{
		{`UPDATE payments SET charge_id = 'pi_1'`, oldCharge, "payments_begun_by_a_new_worker"},
		{`UPDATE refunds SET key_generation = 1`, oldRefund, "refunds_begun_by_a_new_worker"},
	} {
		_, err := pool.Exec(t.Context(), c.begun)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), c.old)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.fence, refused.ConstraintName)
	}
}

// Ensure the statements with which docs/operations/migrations.md ends the change of the payment protocol apply to the
// schema of this release, in their order.
func TestTheNextMigrationsOfThePaymentProtocolApply(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/operations/migrations.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(raw), "## The rollout of the payment protocol\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	for line := range strings.Lines(section) {
		if sql, ok := strings.CutPrefix(line, "    "); ok {
			script.WriteString(sql)
		}
	}
	pool, statements := placed(t), 0
	for sql := range strings.SplitSeq(script.String(), ";\n") {
		if strings.TrimSpace(sql) == "" {
			continue
		}
		statements++
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	require.Equal(t, 6, statements)
	_, err = pool.Exec(t.Context(), `UPDATE payments SET status = 'unresolved'`)
	require.ErrorContains(t, err, "payments_status_check")
	left := texts(t, pool, `SELECT column_name::text FROM information_schema.columns WHERE column_name = 'attempted_at'
		AND table_name IN ('payments', 'refunds')`)
	require.Empty(t, left)
}
