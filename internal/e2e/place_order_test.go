package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure an order that is placed is charged once and that its retry gets the same answer.
func TestPlaceOrderIsPlacedAndPaidOnce(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	s.Product(t, "TEA-001", 1999, 10)
	s.StartWorker(t)
	alice := s.As(t, "alice")
	body := testkit.OrderBody("pm_card_visa", "TEA-001", "2")
	first := alice.Do(http.MethodPost, "/v1/orders", body, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusCreated, first.Status, string(first.Body))
	alice.PaymentStatus(first.Text("id"), "succeeded")
	again := alice.Do(http.MethodPost, "/v1/orders", body, "Idempotency-Key", "k1")
	require.Equal(t, first.Body, again.Body)
	require.Len(t, s.Sandbox.Ledger().Charges, 1)
	require.EqualValues(t, 8, s.OnHand(t, "TEA-001"))
}
