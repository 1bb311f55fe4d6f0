package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

const sandboxDay = 24 * time.Hour

// onThreePages leaves 210 charges at the provider, none of them this service's but the first, one in the middle and the
// last: on the third, the second and the first page of what the provider lists, the newest first.
func (s shop) onThreePages() (oldest, middle, newest string) {
	s.t.Helper()
	_, oldest = s.unknownCharge()
	s.chargesOfOthers(104)
	_, middle = s.unknownCharge()
	s.chargesOfOthers(103)
	_, newest = s.unknownCharge()
	return oldest, middle, newest
}

func (s shop) chargesOfOthers(n int) {
	s.t.Helper()
	for range n {
		s.chargeThere(100, nil)
	}
}

// watermark is how far a stream has been compared: whether a whole pass has ended, and where the one at work goes on.
func (s shop) watermark(stream string) (passed bool, after string) {
	s.t.Helper()
	require.NoError(s.t, s.DB.QueryRow(s.t.Context(), `
		SELECT from_at IS NOT NULL, after_id FROM reconcile_watermarks WHERE stream = $1`, stream).Scan(&passed, &after))
	return passed, after
}

// Ensure a run compares no more pages than it may, that the next one goes on where it ended, and that the watermark moves only
// after a whole pass: what comes meanwhile belongs to the next pass.
func TestReconcileGoesOnPageByPage(t *testing.T) {
	t.Parallel()
	for stream, others := range map[string][]string{
		"payment_intents": {"refunds", "events"}, "events": {"payment_intents", "refunds"},
	} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			s := openShopToReconcile(t, "RECONCILE_PAGES", "1")
			s.compared(others...)
			oldest, middle, newest := s.onThreePages()
			var late string
			for i, seen := range [][]string{{newest}, {newest, middle}, {newest, middle, oldest}} {
				s.reconcile()
				passed, after := s.watermark(stream)
				require.Equal(t, i == 2, passed, "run %d", i)
				require.Equal(t, i == 2, after == "", "run %d", i)
				require.Equal(t, len(seen), s.Count(t, `unmatched_charges`))
				for _, intent := range seen {
					require.True(t, s.noted(intent))
				}
				if i == 0 {
					s.Sandbox.AdvanceClock(time.Hour)
					_, late = s.unknownCharge()
				}
			}
			s.reconcile()
			require.True(t, s.noted(late), "made while the pass before was under way")
		})
	}
}

// Ensure a worker that is killed between two pages, or while it compares one, leaves a watermark that says what was compared
// and no more.
func TestReconcileGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	s.StopWorker(t)
	s.compared("refunds", "events")
	order := s.place("pm_card_visa")
	s.exec(`DELETE FROM river_job WHERE kind = 'charge-order'`)
	s.chargeThere(shopTotal, ofOrder(order)) // on the second page
	s.chargesOfOthers(110)
	row := s.hold("payments", order)
	s.Enqueue(t, testkit.JobReconcile)
	first := s.process()
	s.awaitBlocked(1) // it compares the second page
	passed, after := s.watermark("payment_intents")
	require.False(t, passed)
	require.NotEmpty(t, after)
	first.Kill()
	row.Rollback()
	s.timePasses()
	now, still := s.watermark("payment_intents")
	require.Equal(t, passed, now)
	require.Equal(t, after, still)

	s.StartWorker(t)
	s.reconcile()
	s.alice.PaymentStatus(order, "succeeded")
	passed, after = s.watermark("payment_intents")
	require.True(t, passed)
	require.Empty(t, after)
}

// Ensure a page that the provider does not answer moves nothing, and that a pass whose place the provider does not know any
// more begins again.
func TestReconcileBeginsAPassAgain(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	_, intent := s.unknownCharge()
	s.exec(`UPDATE reconcile_watermarks SET after_id = 'pi_gone', next_at = now() WHERE stream = 'payment_intents'`)
	s.compared("events")
	s.faults(fault(sandbox.OpList, sandbox.FaultError500Before, 1))
	s.reconcile() // which fails twice, at the fault and at the place, and then does it
	require.True(t, s.noted(intent))
	passed, after := s.watermark("payment_intents")
	require.True(t, passed)
	require.Empty(t, after)
	testkit.Eventually(t, "payments at rest", func() bool { return s.Count(t, jobsAtWork) == 0 })
}
