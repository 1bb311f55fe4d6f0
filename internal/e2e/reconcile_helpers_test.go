package e2e

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/testkit"
)

// openShopToReconcile is a shop that learns of the provider only by reconciliation, which runs when the test says so.
func openShopToReconcile(t *testing.T, env ...string) shop {
	t.Helper()
	s := openShopWithoutEvents(t, env...)
	s.StartWorker(t)
	s.reconcile()
	return s
}

// reconcile runs reconcile-payments and what it has enqueued.
func (s shop) reconcile() {
	s.t.Helper()
	runNow(s.t, s.Service, testkit.JobReconcile)
	s.settled()
}

// stripe is a client of the provider that is not this service: a person, another system, or this one before a restore.
func (s shop) stripe() *stripe.Client {
	backend := &stripe.BackendConfig{
		URL: stripe.String(s.Env["STRIPE_BASE_URL"]), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
	}
	return stripe.NewClient(s.Env["STRIPE_API_KEY"], stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))
}

// ofOrder is the metadata by which this service knows its own.
func ofOrder(order string) map[string]string {
	return map[string]string{"tenant_id": "default", "order_id": order}
}

// chargeThere charges at the provider beside this service and returns the intent's id.
func (s shop) chargeThere(cents int64, metadata map[string]string) string {
	s.t.Helper()
	params := &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(cents), Currency: stripe.String("eur"), PaymentMethod: stripe.String("pm_card_visa"),
		PaymentMethodTypes: []*string{stripe.String("card")}, Confirm: stripe.Bool(true), Metadata: metadata,
	}
	made, err := s.stripe().V1PaymentIntents.Create(s.t.Context(), params)
	require.NoError(s.t, err)
	return made.ID
}

// refundThere refunds at the provider beside this service and returns the refund's id.
func (s shop) refundThere(intent string, cents int64, metadata map[string]string) string {
	s.t.Helper()
	params := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(intent), Amount: stripe.Int64(cents), Metadata: metadata,
	}
	made, err := s.stripe().V1Refunds.Create(s.t.Context(), params)
	require.NoError(s.t, err)
	return made.ID
}

// unknownCharge charges an order that is not here, as of before a restore.
func (s shop) unknownCharge() (order, intent string) {
	s.t.Helper()
	order = uuid.NewString()
	return order, s.chargeThere(shopTotal, ofOrder(order))
}

// compared makes a stream one that has been compared, for all that the tests make, so that only the others count.
func (s shop) compared(streams ...string) {
	s.t.Helper()
	for _, stream := range streams {
		s.exec(`INSERT INTO reconcile_watermarks (tenant_id, stream, from_at, after_id, updated_at)
			VALUES ('', $1, now() + interval '1 day', '', now())
			ON CONFLICT (tenant_id, stream) DO UPDATE SET from_at = excluded.from_at`, stream)
	}
}

// noted reports whether a charge is noted as one that no payment accounts for.
func (s shop) noted(intent string) bool {
	return s.Count(s.t, `unmatched_charges WHERE intent_id = $1`, intent) == 1
}

// requireReturnedOnce checks that a charge was given back whole, in one refund, which explains it here.
func (s shop) requireReturnedOnce(order, intent string) {
	s.t.Helper()
	back := s.refunds(order, "succeeded")
	require.Len(s.t, back, 1)
	require.EqualValues(s.t, shopTotal, back[0].Amount)
	require.Equal(s.t, back[0].ID, queryValue[string](s, `SELECT refund_id FROM unmatched_charges WHERE intent_id = $1`, intent))
	require.EqualValues(s.t, 1, s.found("worker", "unmatched_returned"))
}

// delayPasses makes what was noted so old that it is due for its return.
func (s shop) delayPasses() {
	s.t.Helper()
	s.exec(`UPDATE unmatched_charges SET created_at = created_at - interval '25 hours'`)
}

// loseRefund takes a refund out of the books, as a restore does.
func (s shop) loseRefund(order string) {
	s.t.Helper()
	s.exec(`DELETE FROM refunds WHERE order_id = $1`, order)
}

// giveUpCharge makes the books say what they say of an order whose charge was given up: the payment has this status, the
// order is cancelled and its stock is back.
func (s shop) giveUpCharge(order, status string) {
	s.t.Helper()
	s.exec(`UPDATE payments SET status = $2, charge_id = '', version = version + 1 WHERE order_id = $1`, order, status)
	s.cancelHere(order)
}

// cancelHere cancels an order in the books and puts its stock back.
func (s shop) cancelHere(order string) {
	s.t.Helper()
	s.exec(`UPDATE orders SET status = 'cancelled', cancellation_reason = 'given up', cancelled_at = now(),
		version = version + 1 WHERE id = $1`, order)
	s.exec(`UPDATE stock SET on_hand = on_hand + 2, version = version + 1 WHERE sku = $1`, shopSKU)
}
