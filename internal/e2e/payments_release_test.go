package e2e

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// What a worker of the previous release writes: before it asks for a charge, and before it asks for a refund.
const (
	oldAttempt = `UPDATE payments SET status = 'pending', charge_id = '', attempted_at = now(), updated_at = now(),
		version = version + 1 WHERE order_id = $1`
	oldAttemptAtCharge = `UPDATE payments SET status = 'pending', charge_id = $2, attempted_at = now(), updated_at = now(),
		version = version + 1 WHERE order_id = $1`
	oldAttemptAtRefund = `INSERT INTO refunds (tenant_id, order_id, id, amount, status, reason, attempted_at, created_at)
		SELECT tenant_id, order_id, id, amount, status, reason, now(), created_at FROM refunds WHERE order_id = $1
		ON CONFLICT (tenant_id, order_id, id) DO UPDATE SET status = excluded.status, attempted_at = excluded.attempted_at`
)

// oldCharge charges as a worker of the previous release does: confirmed at creation.
func (s shop) oldCharge(order string) string {
	s.t.Helper()
	params := &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(shopTotal), Currency: stripe.String("eur"), PaymentMethod: stripe.String("pm_card_visa"),
		PaymentMethodTypes: []*string{stripe.String("card")}, Confirm: stripe.Bool(true), Metadata: ofOrder(order),
	}
	params.SetIdempotencyKey("order:" + order)
	made, err := s.stripe().V1PaymentIntents.Create(s.t.Context(), params)
	require.NoError(s.t, err)
	return made.ID
}

// requireFenced checks that the database refuses a statement of the previous release.
func (s shop) requireFenced(fence, statement string, args ...any) {
	s.t.Helper()
	_, err := s.DB.Exec(s.t.Context(), statement, args...)
	var refused *pgconn.PgError
	require.ErrorAs(s.t, err, &refused)
	require.Equal(s.t, fence, refused.ConstraintName)
}

// Ensure a worker of the previous release cannot begin a charge or a refund that a worker of this one has begun: the
// database refuses the note that it makes before it asks the provider.
func TestPaymentIsFencedFromAnOldWorker(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultError500Undone, 1))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	intent := queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order)
	s.requireFenced("payments_begun_by_a_new_worker", oldAttemptAtCharge, order, intent)
	s.runNow("charge-order", order)
	s.alice.PaymentStatus(order, "succeeded")

	s.faults(fault("refund", sandbox.FaultDrop, 1))
	receipt := s.refund(order, "r", 1000)
	s.jobFailed("refund-charge", order)
	s.requireFenced("refunds_begun_by_a_new_worker", oldAttemptAtRefund, order)
	s.runNow("refund-charge", order)
	s.requireRefundedOnce(receipt)
}

// Ensure an old worker that begins while a new one creates the intent ends the new one's run: it has committed no id and
// confirms nothing.
func TestPaymentRunEndsWhereAnOldWorkerBegins(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.faults(fault(sandbox.OpCreateIntent, sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.held(1)
	s.exec(oldAttempt, order)
	charge := s.oldCharge(order)
	s.Sandbox.ClearFaults()
	s.jobFailed("charge-order", order)
	require.Empty(t, s.attempts("confirm", order))
	require.Equal(t, "pending", s.payment(order).Text("status"))
	require.Equal(t, 1, s.charged(order))

	s.Sandbox.AdvanceClock(2 * sandbox.DefaultSearchLag)
	s.runNow("charge-order", order)
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, charge, queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order))
	require.Equal(t, 1, s.charged(order))
}

// Ensure a charge that an old worker has asked for is looked up first: what it charged is adopted, what it may still be
// charging is waited for, and where it has charged nothing the new protocol charges, once.
func TestPaymentBegunByAnOldWorker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ status, age string }{
		"pending":    {"pending", "1 minute"},
		"unresolved": {"unresolved", "30 hours"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			charged, untouched := s.place("pm_card_visa"), s.place("pm_card_visa")
			s.exec(`UPDATE payments SET attempted_at = now() - $1::interval, status = $2`, test.age, test.status)
			old := s.oldCharge(charged)
			s.Sandbox.AdvanceClock(2 * sandbox.DefaultSearchLag)
			s.StartWorker(t)
			s.alice.PaymentStatus(charged, "succeeded")
			require.Equal(t, old, queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, charged))
			require.Empty(t, s.attempts("intent", charged))
			if test.status == "pending" {
				s.jobFailed("charge-order", untouched)
				require.Empty(t, s.attempts("intent", untouched), "an old worker may still be charging")
				s.exec(`UPDATE payments SET attempted_at = attempted_at - interval '2 hours' WHERE status = 'pending'`)
				s.runNow("charge-order", untouched)
			}
			s.alice.PaymentStatus(untouched, "succeeded")
			require.Equal(t, 1, s.charged(charged))
			require.Equal(t, 1, s.charged(untouched))
			require.Zero(t, s.Count(t, `payments WHERE attempted_at IS NOT NULL AND charge_id = ''`))
		})
	}
}

// Ensure a refund that an old worker has asked for is listed first, and else asked for under the key that it used, which has
// no tenant.
func TestPaymentRefundBegunByAnOldWorker(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"it was made": true, "it was not made": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.StopWorker(t)
			receipt := s.refund(order, "r", 1000)
			id := receipt.Text("id")
			s.exec(`UPDATE refunds SET attempted_at = now() - interval '1 minute'`)
			if made {
				s.refundThere(s.intentOf(order), 1000, map[string]string{
					"tenant_id": "default", "order_id": order, "refund_id": id,
				})
			}
			before := len(s.attempts("refund", order))
			s.StartWorker(t)
			attempts := s.requireRefundedOnce(receipt)[before:]
			if made {
				require.Empty(t, attempts)
				return
			}
			require.Equal(t, []string{"refund:" + id}, keys(attempts))
		})
	}
}

// Ensure an old API that cancels an order at once, since it does not know that its charge is under way, does not make the
// charge go unheard: it is adopted and goes back.
func TestPaymentCanceledByAnOldAPI(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.held(1)
	s.exec(`UPDATE payments SET status = 'canceled', version = version + 1 WHERE order_id = $1`, order)
	s.cancelHere(order)
	s.Sandbox.ClearFaults()
	s.refundedOnce(order)
	s.requireCancelled(order)
	require.EqualValues(t, 1, s.found("worker", "late_charge"))
}
