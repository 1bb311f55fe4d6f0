package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a worker that is killed while it purges has removed the batches that it committed and nothing else, and that
// its successor removes the rest.
func TestCrashPurgeSurvivesAKilledWorker(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	expiredKeys(t, s.Service, 3)
	left := func() int { return s.Count(t, expiredRecords) }
	s.PeriodicJobsDue(t)
	first := s.process("PURGE_BATCH_SIZE", "1", "PURGE_PAUSE", "1m")
	testkit.Eventually(t, "the pause after one batch", func() bool { return left() == 2 })
	first.Kill()
	require.Equal(t, 2, left())
	s.timePasses()

	s.process()
	testkit.Eventually(t, "the rest of the purge", func() bool { return left() == 0 })
}
