package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure 20 duplicates that meet while the winner is in the middle of its transaction make one order and 20 equal
// answers.
//
// Standard: litespec/ext/concurrency#reload-concurrent-winners
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyTwentyDuplicatesMakeOneOrder(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(20, "k", tea(), s.As(t, "alice"))
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, 19)
	requireStored(t, s, 0)
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 20))
	requireStored(t, s, 1)
	require.EqualValues(t, 8, s.OnHand(t, "TEA-001"))
}

// Ensure the same of duplicates that meet at two instances, which share nothing but the database.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyTwentyDuplicatesAtTwoInstancesMakeOneOrder(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	other := s.Another(t)
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(20, "k", tea(), s.As(t, "alice"), other.As(t, "alice"))
	// One waits for the stock, one of the other instance looks for the key now and again, the rest wait in memory.
	testkit.AwaitGoroutines(t, atTheGate, 18)
	s.AwaitBlockedOn(t, "FROM stock")
	testkit.AwaitGoroutines(t, looksAgain, 1)
	requireStored(t, s, 0)
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 20))
	requireStored(t, s, 1)
}

// Ensure that when a winner rolls back exactly one waiter takes over, runs anew and decides for itself, until one is
// accepted; the rest then get its answer.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyOneWaiterTakesOverFromAWinnerThatRollsBack(t *testing.T) {
	t.Parallel()
	const n, refused = 8, 3
	// On the one connection all is prepared: preparing a statement would wait for the table too, and not within a transaction.
	s := startPatient(t, "DB_MAX_CONNS", "1")
	s.Product(t, "MUG-001", 1250, 1)
	s.As(t, "bob").Place("earlier", testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
	holder := s.QueueForStock(t).Granted().Exec(`UPDATE stock SET on_hand = 0 WHERE sku = 'TEA-001'`)
	answers := duplicates(n, "k", tea(), s.As(t, "alice"))
	for i := range refused {
		s.AwaitBlocked(t, 1) // the winner, in its transaction
		testkit.AwaitGoroutines(t, atTheGate, n-1-i)
		next := s.QueueForStock(t) // behind the winner, before the one that takes over
		holder.Commit()
		requireRefused(t, testkit.Take(t, answers), http.StatusConflict, "insufficient_stock")
		requireStored(t, s, 1) // bob's
		holder = next.Granted()
	}
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, n-1-refused)
	holder.Exec(`UPDATE stock SET on_hand = 10 WHERE sku = 'TEA-001'`).Commit()
	requireOneWinner(t, testkit.Receive(answers, n-refused))
	requireStored(t, s, 2)
}

// Ensure the same across instances, where the winner's session is ended by the server.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAnotherInstanceTakesOverFromAWinnerThatDies(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	other := s.Another(t)
	held := s.HoldStock(t, "TEA-001")
	winner := placeLater(s.As(t, "alice"), "k", tea())
	s.AwaitBlockedOn(t, "FROM stock")
	waiters := duplicates(5, "k", tea(), other.As(t, "alice"))
	testkit.AwaitGoroutines(t, looksAgain, 1)
	require.Equal(t, 1, s.Count(t, `pg_stat_activity, pg_terminate_backend(pid)
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FROM stock%'`))
	lost := testkit.Take(t, winner)
	requireRefused(t, lost, http.StatusServiceUnavailable, "try_again")
	require.NotEmpty(t, lost.Header.Get("Retry-After"))
	s.AwaitBlockedOn(t, "FROM stock") // the one that took over
	testkit.AwaitGoroutines(t, atTheGate, 4)
	requireStored(t, s, 0)
	held.Commit()
	requireOneWinner(t, testkit.Receive(waiters, 5))
	requireStored(t, s, 1)
}

// Ensure that waiting duplicates leave the connections to others: with a pool of 4 and 50 duplicates, reads and other
// orders are answered while the winner is still held.
func TestIdempotencyWaitingDuplicatesLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_MAX_CONNS", "4")
	s.Product(t, "MUG-001", 1250, 100)
	alice, bob := s.As(t, "alice"), s.As(t, "bob")
	earlier := bob.Place("earlier", testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(50, "k", tea(), alice)
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, 49)

	requireOthersServed(t, bob, earlier)
	require.Empty(t, answers, "the winner was held and was answered")
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 50))
}

// Ensure the same where the winner is at another instance, so that the duplicates look for its record now and again: even a
// pool of one connection serves others.
func TestIdempotencyDuplicatesOfAnotherInstanceLeaveASingleConnectionToOthers(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	s.Product(t, "MUG-001", 1250, 100)
	small := s.Another(t, "DB_MAX_CONNS", "1")
	bob := small.As(t, "bob")
	earlier := bob.Place("earlier", testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
	held := s.HoldStock(t, "TEA-001")
	winner := placeLater(s.As(t, "alice"), "k", tea())
	s.AwaitBlockedOn(t, "FROM stock")
	answers := duplicates(50, "k", tea(), small.As(t, "alice"))
	testkit.AwaitGoroutines(t, atTheGate, 49)
	testkit.AwaitGoroutines(t, looksAgain, 1)

	requireOthersServed(t, bob, earlier)
	require.Empty(t, answers, "the winner was held and a duplicate was answered")
	held.Commit()
	requireOneWinner(t, append(testkit.Receive(answers, 50), testkit.Take(t, winner)))
}

// requireOthersServed makes reads and orders of MUG-001 at once; all must be answered as if no request waited.
func requireOthersServed(t *testing.T, bob *testkit.Caller, order string) {
	t.Helper()
	reads := testkit.Together(10, func(int) int {
		a, _ := bob.Try(http.MethodGet, "/v1/orders/"+order, "")
		return a.Status
	})
	orders := testkit.Together(10, func(i int) int {
		return place(bob, "mug-"+strconv.Itoa(i), testkit.OrderBody("pm_card_visa", "MUG-001", "1")).Status
	})
	for range 10 {
		require.Equal(t, http.StatusOK, testkit.Take(t, reads))
		require.Equal(t, http.StatusCreated, testkit.Take(t, orders))
	}
}

// Ensure a pool of one connection neither deadlocks on 50 duplicates nor on 50 different orders.
func TestIdempotencyAPoolOfOneDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_MAX_CONNS", "1")
	s.Product(t, "MUG-001", 1250, 100)
	alice := s.As(t, "alice")
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(50, "k", tea(), alice)
	testkit.AwaitGoroutines(t, atTheGate, 49)
	s.AwaitBlocked(t, 1)
	held.Commit()
	requireOneWinner(t, testkit.Receive(answers, 50))

	others := testkit.Together(50, func(i int) testkit.Answer {
		return place(alice, strconv.Itoa(i), testkit.OrderBody("pm_card_visa", "MUG-001", "1"))
	})
	for range 50 {
		requirePlaced(t, testkit.Take(t, others))
	}
	requireStored(t, s, 51)
}
