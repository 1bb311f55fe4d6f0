package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure an API that is killed before its commit leaves neither order nor key, and that the retry at a new
// process succeeds once.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAKilledAPILeavesNothing(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	first := testkit.Process(t, "api", s.Env)
	held := s.HoldStock(t, "TEA-001")
	lost := placeLater(s.At(first.URL).As(t, "alice"), "k", tea())
	s.AwaitBlockedOn(t, "FROM stock")
	first.Kill()
	require.Zero(t, testkit.Take(t, lost).Status, "a killed process answered")
	requireStored(t, s, 0)

	second := testkit.Process(t, "api", s.Env)
	alice := s.At(second.URL).As(t, "alice")
	// The dead process's session still waits for the stock and has the turn of the key, so the retry rolls back and looks
	// again.
	const rolledBack = `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-api'
		AND query = 'rollback'`
	require.Zero(t, s.Count(t, rolledBack))
	retry := placeLater(alice, "k", tea())
	testkit.Eventually(t, "retry that found the key at work", func() bool { return s.Count(t, rolledBack) > 0 })
	require.Empty(t, retry)
	held.Commit()
	placed := testkit.Take(t, retry)
	requirePlaced(t, placed)
	requireReplay(t, placed, place(alice, "k", tea()))
	requireStored(t, s, 1)
}

// Ensure a caller whose answer was lost on its way gets that same answer by a retry.
//
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyALostAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	proxy := testkit.StartProxy(t, s.URL)
	alice := s.At(proxy.URL).As(t, "alice")
	// A connection of its own for each request: Go's client would repeat the request by itself on a used one.
	alice.HTTP.Transport = testkit.Checked(t, &http.Transport{DisableKeepAlives: true})
	proxy.LoseAnswers(1)
	require.Zero(t, place(alice, "k", tea()).Status)
	requireStored(t, s, 1)
	requireReplay(t, proxy.Lost(), place(alice, "k", tea()))
	requireStored(t, s, 1)
}

// Ensure that where the COMMIT's own reply is lost the caller is told that the outcome is unknown, never that nothing happened,
// and learns by a retry that the order was placed.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
// Standard: litespec/ext/concurrency#exclude-unsafe-replay-outcomes
func TestIdempotencyALostCommitReplyIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	s, proxy := startBehindProxy(t)
	alice := s.As(t, "alice")
	commit := proxy.OnNextCommit(testkit.LoseReply)
	requireUnknown(t, place(alice, "k", tea()))
	testkit.Take(t, commit.Reached)
	requireStored(t, s, 1)
	again := place(alice, "k", tea())
	require.Equal(t, http.StatusCreated, again.Status, string(again.Body))
	require.True(t, replayed(again))
	require.Equal(t, again.Header.Get("ETag"), alice.Get(again.Header.Get("Location")).Header.Get("ETag"))
	requireStored(t, s, 1)
}

// Ensure a COMMIT that never reached the server is answered with care too, and that the retry makes the order.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyALostCommitIsMadeUpForByTheRetry(t *testing.T) {
	t.Parallel()
	s, proxy := startBehindProxy(t)
	alice := s.As(t, "alice")
	commit := proxy.OnNextCommit(testkit.LoseCommit)
	requireUnknown(t, place(alice, "k", tea()))
	testkit.Take(t, commit.Reached)
	requireUntouched(t, s, alice)
}

func requireUnknown(t *testing.T, a testkit.Answer) {
	t.Helper()
	requireRefused(t, a, http.StatusServiceUnavailable, "outcome_unknown")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Contains(t, a.Text("detail"), "same Idempotency-Key")
}

// Ensure duplicates that wait while the winner's outcome gets lost learn it from the store: one order, all replays.
//
// Standard: litespec/ext/concurrency#reload-concurrent-winners
func TestIdempotencyWaitersLearnAnUnknownOutcomeFromTheStore(t *testing.T) {
	t.Parallel()
	s, proxy := startBehindProxy(t)
	alice := s.As(t, "alice")
	held := s.HoldStock(t, "TEA-001")
	answers := duplicates(5, "k", tea(), alice)
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, 4)
	proxy.OnNextCommit(testkit.LoseReply)
	held.Commit()
	requireUnknown(t, testkit.Take(t, answers))
	all := testkit.Receive(answers, 4)
	for _, a := range all {
		requireReplay(t, all[0], a)
	}
	requireStored(t, s, 1)
}

// Ensure a client that goes away before the commit leaves nothing behind: no order, no key, and no turn at the key.
//
// Standard: litespec/ext/concurrency#discard-failed-replay-state
func TestIdempotencyAClientThatLeavesBeforeTheCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startPatient(t, "DB_MAX_CONNS", "2")
	alice := s.As(t, "alice")
	held := s.HoldStock(t, "TEA-001")
	gone, leave := leaving(alice)
	lost := duplicates(3, "k", tea(), gone)
	s.AwaitBlocked(t, 1)
	testkit.AwaitGoroutines(t, atTheGate, 2)
	leave()
	for range 3 {
		require.Zero(t, testkit.Take(t, lost).Status)
	}
	s.AwaitBlocked(t, 0) // the winner's statement was cancelled
	testkit.AwaitGoroutines(t, atTheGate, 0)
	requireStored(t, s, 0)
	held.Rollback()
	requireUntouched(t, s, alice)
}

// Ensure a client that goes away during the COMMIT does not abort it: the order is placed, and a retry gets it.
//
// Standard: litespec/ext/concurrency#store-idempotency-state-atomically
func TestIdempotencyAClientThatLeavesDuringTheCommitDoesNotAbortIt(t *testing.T) {
	t.Parallel()
	s := startPatient(t)
	held := holdCommits(t, s, goOn)
	alice := s.As(t, "alice")
	gone, leave := leaving(alice)
	lost := placeLater(gone, "k", tea())
	s.AwaitBlockedOn(t, "commit")
	require.Zero(t, s.Count(t, "orders"))
	leave()
	require.Zero(t, testkit.Take(t, lost).Status)
	requireCommitting(t, s, alice)
	held.Commit()
	testkit.Eventually(t, "the order", func() bool { return s.Count(t, "orders") == 1 })
	again := place(alice, "k", tea())
	require.Equal(t, http.StatusCreated, again.Status, string(again.Body))
	require.True(t, replayed(again))
	requireStored(t, s, 1)
}

// requireCommitting makes sure that the API has learned of the client's leaving, and has had the time of other requests
// to do something about it, and that the COMMIT still goes on.
func requireCommitting(t *testing.T, s *testkit.Service, other *testkit.Caller) {
	t.Helper()
	const read = "net/http.(*connReader).backgroundRead" // sees the client leave, and ends the request's context
	testkit.AwaitGoroutines(t, read, 0)
	for range 20 {
		require.Equal(t, http.StatusOK, other.Get("/v1/orders").Status)
	}
	s.AwaitBlockedOn(t, "commit")
}

// Ensure the same where the server has committed and its reply is on its way.
//
// Standard: litespec/ext/concurrency#replay-completed-results
func TestIdempotencyAClientThatLeavesBeforeTheCommitsReplyFindsItsOrder(t *testing.T) {
	t.Parallel()
	s, proxy := startBehindProxy(t)
	alice := s.As(t, "alice")
	commit := proxy.OnNextCommit(testkit.HoldReply)
	gone, leave := leaving(alice)
	lost := placeLater(gone, "k", tea())
	testkit.Take(t, commit.Reached)
	leave()
	require.Zero(t, testkit.Take(t, lost).Status)
	requireStored(t, s, 1)
	retry := placeLater(alice, "k", tea())
	testkit.AwaitGoroutines(t, atTheGate, 1) // behind the request whose client has gone
	commit.Release()
	again := testkit.Take(t, retry)
	require.Equal(t, http.StatusCreated, again.Status, string(again.Body))
	require.True(t, replayed(again))
	requireStored(t, s, 1)
}
