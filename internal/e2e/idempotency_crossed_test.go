package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// crossed is two orders of the same skus with their lines in opposite order.
func crossed() [2]string {
	return [2]string{
		testkit.OrderBody("pm_card_visa", "TEA-001", "1", "MUG-001", "1"),
		testkit.OrderBody("pm_card_visa", "MUG-001", "1", "TEA-001", "1"),
	}
}

// Ensure crossed lines lock their stock in one order. Both orders are held at the first sku: neither may have the other
// sku yet, for then each would wait for the other.
func TestIdempotencyCrossedLinesLockInOneOrder(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"MUG-001", "TEA-001"} {
		t.Run("held at "+first, func(t *testing.T) {
			t.Parallel()
			s := startPatient(t)
			s.Product(t, "MUG-001", 1250, 10)
			alice := s.As(t, "alice")
			held := s.HoldStock(t, first)
			answers := testkit.Together(2, func(i int) testkit.Answer {
				return place(alice, fmt.Sprint(i), crossed()[i])
			})
			s.AwaitBlocked(t, 2)
			if first == "MUG-001" { // the lower of the two
				s.Begin(t).Exec(`SELECT FROM stock WHERE sku = 'TEA-001' FOR UPDATE NOWAIT`).Commit()
			}
			held.Commit()
			requirePlaced(t, testkit.Take(t, answers))
			requirePlaced(t, testkit.Take(t, answers))
		})
	}
}

// Ensure many crossed orders at once are all placed. No caller is told to try again, and PostgreSQL saw no deadlock that a
// hidden retry could have resolved.
func TestIdempotencyCrossedLinesNeverDeadlock(t *testing.T) {
	t.Parallel()
	const rounds, each = 10, 8
	s := startPatient(t)
	s.Product(t, "MUG-001", 1250, rounds*each)
	s.Begin(t).Exec(`UPDATE stock SET on_hand = $1 WHERE sku = 'TEA-001'`, rounds*each).Commit()
	s.Stocked(t, "default", "TEA-001", rounds*each-10)
	alice := s.As(t, "alice")
	for round := range rounds {
		answers := testkit.Together(each, func(i int) testkit.Answer {
			return place(alice, fmt.Sprintf("%d-%d", round, i), crossed()[i%2])
		})
		for range each {
			requirePlaced(t, testkit.Take(t, answers))
		}
	}
	require.Zero(t, s.OnHand(t, "TEA-001"))
	require.Zero(t, s.OnHand(t, "MUG-001"))
	s.StopAPI(t) // a session reports what it counted when it ends
	testkit.Eventually(t, "the end of the API's sessions", func() bool {
		return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-api'`) == 0
	})
	require.Zero(t, s.Count(t, `pg_stat_database WHERE datname = current_database() AND deadlocks > 0`))
}
