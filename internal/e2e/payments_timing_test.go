package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure PROVIDER_TIMEOUT bounds all calls of one run together, so that a run of slow calls, each within the bound, ends
// before JOB_TIMEOUT does and has time to record what came of it.
func TestPaymentRunOfSlowCallsEndsInTime(t *testing.T) {
	t.Parallel()
	slow := func(operation string) sandbox.FaultRule {
		return sandbox.FaultRule{Operation: operation, Kind: sandbox.FaultDelay, DelayMS: 1200}
	}
	s := openShopWithoutEvents(t, "PROVIDER_TIMEOUT", "2s", "JOB_TIMEOUT", "3s", "JOB_RESCUE_AFTER", "10m")
	s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultError500Before, 1), slow(sandbox.OpRetrieveIntent), slow(sandbox.OpConfirmIntent))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	s.runNow("charge-order", order) // it retrieves, in time, and confirms, not in time
	s.awaitJob("charge-order", order, `cardinality(errors) >= 2`)
	s.alice.PaymentStatus(order, "succeeded") // the next run finds it charged
	require.Equal(t, 1, s.charged(order))
}

// Ensure a provider that asks to wait is not asked again before: neither for the order that it answered so nor for another.
func TestPaymentWaitsAsLongAsTheProviderAsks(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Second
	s := openShopWithoutEvents(t)
	s.faults(sandbox.FaultRule{
		Operation: sandbox.OpCreateIntent, Kind: sandbox.FaultRateLimit429, Times: 1, RetryAfter: int(wait / time.Second),
	})
	order := s.place("pm_card_visa")
	before := time.Now() // the provider's answer comes later, so its wait ends after before+wait
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	other := s.place("pm_card_visa")
	testkit.Eventually(t, "both paid", func() bool {
		s.dueNow("charge-order")
		if asked := len(s.Sandbox.Attempts()); time.Since(before) < wait {
			require.Equal(t, 1, asked, "asked again before the provider's wait was over")
		}
		return s.Count(t, `payments WHERE status = 'succeeded'`) == 2
	})
	require.Equal(t, 1, s.charged(order))
	require.Equal(t, 1, s.charged(other))
}
