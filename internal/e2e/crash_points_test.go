package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure a worker that is killed while it notes that it is about to ask has asked nobody, and that its successor does.
func TestPaymentSurvivesAWorkerKilledBeforeTheAttempt(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	row := s.hold("payments", order)
	first := s.process()
	s.awaitBlocked(1)
	first.Kill()
	require.Empty(t, s.attempts("charge", order))
	row.Rollback()
	require.True(t, queryValue[bool](s, `SELECT attempted_at IS NULL FROM payments WHERE order_id = $1`, order))
	s.timePasses()

	s.successor()
	s.alice.PaymentStatus(order, "succeeded")
	require.Len(t, s.attempts("charge", order), 1)
}
