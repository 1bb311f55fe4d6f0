package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure a run removes only what has expired, the oldest first, no more than a batch at a time and no more batches than
// it may, and tells what it removed and what is left.
//
// Standard: litespec/ext/concurrency#bound-expired-record-cleanup
func TestPurgeRemovesOnlyWhatHasExpiredOldestFirst(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, "PURGE_BATCH_SIZE", "4", "PURGE_BATCHES", "3", "PURGE_PAUSE", "0s")
	s.Product(t, "TEA-001", 1999, 10)
	alice := s.As(t, "alice")
	live := place(alice, "live", tea())
	requirePlaced(t, live)
	expiredKeys(t, s, 25)
	recordBatches(t, s)
	log := keepJournal(s)
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	awaitRun(t, s, testkit.JobPurge)

	requireBatches(t, purgedBatches(t, s), 4, 4, 4)
	require.Equal(t, 13, s.Count(t, expiredRecords))
	requireReplay(t, live, place(alice, "live", tea()))
	requirePurgeReported(t, s, log, 12, 13)

	runNow(t, s, testkit.JobPurge)
	requireBatches(t, purgedBatches(t, s), 4, 4, 4, 4, 4, 4)
	runNow(t, s, testkit.JobPurge)
	require.Zero(t, s.Count(t, expiredRecords))
	requireReplay(t, live, place(alice, "live", tea()))
}

// requireBatches checks the sizes of the batches, that each was older than the next, and that nothing live was in them.
func requireBatches(t *testing.T, got []purgedBatch, sizes ...int) {
	t.Helper()
	require.Len(t, got, len(sizes))
	for i, b := range got {
		require.Equal(t, sizes[i], b.Removed, "batch %d", i)
		require.Zero(t, b.Live, "batch %d", i)
		if i > 0 {
			require.False(t, b.Oldest.Before(got[i-1].Newest), "batch %d removed what is older than batch %d", i, i-1)
		}
	}
}

func requirePurgeReported(t *testing.T, s *testkit.Service, log *journal, removed, remaining int) {
	t.Helper()
	lines := linesWith(linesOf(t, log.text()), "purged idempotency keys")
	require.Len(t, lines, 1)
	require.EqualValues(t, removed, lines[0]["removed"])
	require.EqualValues(t, remaining, lines[0]["remaining"])
	require.GreaterOrEqual(t, lines[0]["oldest_expired_age_seconds"], (time.Duration(remaining) * time.Hour).Seconds())
	m := scrape(t, s.Metrics["worker"])
	require.EqualValues(t, removed, m.Value("orders_idempotency_keys_purged_total"))
	require.EqualValues(t, remaining, m.Value("orders_idempotency_keys_expired"))
	require.GreaterOrEqual(t, m.Value("orders_idempotency_keys_oldest_expired_age_seconds"),
		(time.Duration(remaining) * time.Hour).Seconds())
}

// Ensure a worker that stops does not wait for the rest of a purge: what was removed stays removed, the run is not done, and
// the next worker goes on with it at once, not after the interval.
func TestPurgeEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, "PURGE_BATCH_SIZE", "1", "PURGE_PAUSE", "1m",
		"SHUTDOWN_TIMEOUT", "10m", "JOB_TIMEOUT", "10m", "JOB_RESCUE_AFTER", "20m")
	expiredKeys(t, s, 5)
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	testkit.Eventually(t, "first batch", func() bool { return s.Count(t, expiredRecords) == 4 })
	s.StopWorker(t) // would wait for ten minutes
	require.Equal(t, 4, s.Count(t, expiredRecords))
	require.Zero(t, s.Count(t, `river_job WHERE kind = $1 AND state = 'completed'`, testkit.JobPurge))
	for left := 3; left > 0; left-- {
		s.StartWorker(t)
		testkit.Eventually(t, "another batch", func() bool { return s.Count(t, expiredRecords) == left })
		s.StopWorker(t)
	}
	require.Equal(t, 1, s.Count(t, `river_job WHERE kind = $1`, testkit.JobPurge), "one run, cut short again and again")
}

// Ensure a run whose time is up stops too, without an error: a batch that has begun is undone or done.
func TestPurgeEndsWithItsTime(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, "PURGE_BATCH_SIZE", "1", "PURGE_PAUSE", "1m",
		"PROVIDER_TIMEOUT", "5s", "JOB_TIMEOUT", "8s", "JOB_RESCUE_AFTER", "1m")
	expiredKeys(t, s, 5)
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	awaitRun(t, s, testkit.JobPurge)
	require.Equal(t, 4, s.Count(t, expiredRecords))
	require.Zero(t, s.Count(t, `river_job WHERE kind = $1 AND errors <> '{}'`, testkit.JobPurge))
}

// Ensure workers that restart more often than the interval purge all the same, and that their restarts do not pile
// runs up.
func TestPurgeIsNotStarvedByRestarts(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	expiredKeys(t, s, 5)
	s.PeriodicJobsDue(t)
	began := time.Now()
	for range 3 {
		s.StartWorker(t)
		testkit.Eventually(t, "run of the purge", func() bool {
			return s.Count(t, `river_job WHERE kind = $1`, testkit.JobPurge) > 0
		})
		s.StopWorker(t)
	}
	s.StartWorker(t)
	testkit.Eventually(t, "purged", func() bool { return s.Count(t, expiredRecords) == 0 })
	day := 24 * time.Hour
	periods := 1 + int(time.Now().Truncate(day).Sub(began.Truncate(day))/day) // midnight may pass
	require.LessOrEqual(t, s.Count(t, `river_job WHERE kind = $1`, testkit.JobPurge), periods)
}

// Ensure the purge gets its turn while charges take every place of the worker, as in an outage of the provider they do.
func TestPurgeIsNotStarvedByCharges(t *testing.T) {
	t.Parallel()
	s := openShop(t, "WORKER_CONCURRENCY", "1", "PROVIDER_TIMEOUT", "4m", "JOB_TIMEOUT", "5m", "JOB_RESCUE_AFTER", "10m")
	s.PeriodicJobsDue(t)
	s.StartWorker(t)
	awaitRun(t, s.Service, testkit.JobPurge)
	awaitRun(t, s.Service, testkit.JobReconcile)
	s.faults(fault("charge", sandbox.FaultHold, 0))
	s.place("pm_card_visa")
	s.held(1)
	expiredKeys(t, s.Service, 5)
	s.exec(`INSERT INTO river_job (kind, queue, args, max_attempts)
		SELECT kind, queue, args, max_attempts FROM river_job WHERE kind = $1`, testkit.JobPurge) // one more of the periodic kind
	testkit.Eventually(t, "purged", func() bool { return s.Count(t, expiredRecords) == 0 })
	s.Sandbox.ClearFaults()
}

// Ensure 200,000 expired keys are purged by two workers while orders are placed and replayed, and while expired keys
// are used anew: no live key is lost, no batch exceeds its bound, and no request fails.
//
// Standard: litespec/ext/concurrency#bound-expired-record-cleanup
func TestPurgeByTwoWorkersWhileOrdersArePlaced(t *testing.T) {
	t.Parallel()
	keys := 200_000
	if testing.Short() {
		keys = 20_000
	}
	s := testkit.Start(t, patient("PURGE_BATCH_SIZE", "1000", "PURGE_BATCHES", "10000", "PURGE_PAUSE", "1ms",
		"WORKER_CONCURRENCY", "1", "JOB_TIMEOUT", "10m", "JOB_RESCUE_AFTER", "20m")...)
	s.Product(t, "TEA-001", 1999, 1_000_000)
	expiredKeysEvery(t, s, keys, time.Second)
	recordBatches(t, s)
	runs := []int64{s.Enqueue(t, testkit.JobPurge), s.Enqueue(t, testkit.JobPurge)}
	held := s.Begin(t).Exec(`LOCK TABLE idempotency_keys IN SHARE MODE`)
	s.AnotherWorker(t)
	s.AnotherWorker(t)
	testkit.Eventually(t, "two purges at the start gate", func() bool { return s.Count(t, blockedWorkers) == 2 })
	held.Commit()
	placed := placeWhile(t, s, func() bool {
		return s.Count(t, `river_job WHERE id = any($1) AND state <> 'completed'`, runs) > 0
	})

	require.Zero(t, s.Count(t, expiredRecords))
	require.Equal(t, placed, s.Count(t, `idempotency_keys WHERE expires_at > now()`))
	for _, b := range purgedBatches(t, s) {
		require.LessOrEqual(t, b.Removed, 1000)
		require.Zero(t, b.Live)
	}
	require.Equal(t, 2, s.Count(t, `(SELECT DISTINCT attempted_by[1] FROM river_job WHERE id = any($1)) w`, runs),
		"workers that purged")
}

// placeWhile places orders and replays each, under new keys and under expired ones in turn, for as long as the
// condition holds. It returns how many keys it used.
func placeWhile(t *testing.T, s *testkit.Service, condition func() bool) (placed int) {
	t.Helper()
	alice := s.As(t, "alice")
	for ; placed == 0 || condition(); placed += 4 {
		answers := testkit.Together(4, func(i int) [2]testkit.Answer {
			key := "new-" + strconv.Itoa(placed+i)
			if i%2 == 0 {
				key = "old-" + strconv.Itoa(placed+i+1)
			}
			return [2]testkit.Answer{place(alice, key, tea()), place(alice, key, tea())}
		})
		for _, a := range testkit.Receive(answers, 4) {
			requirePlaced(t, a[0])
			requireReplay(t, a[0], a[1])
		}
	}
	return placed
}
