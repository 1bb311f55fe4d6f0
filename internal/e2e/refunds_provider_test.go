package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// refundStatus is the status of the one refund of an order, as the payment shows it.
func (s shop) refundStatus(order string) string {
	s.t.Helper()
	p := s.payment(order)
	var payment struct {
		Refunds []struct{ Status string }
	}
	require.NoError(s.t, json.Unmarshal(p.Body, &payment))
	require.Len(s.t, payment.Refunds, 1, string(p.Body))
	return payment.Refunds[0].Status
}

// requireRefundedOnce waits for the one refund of an order to be known as succeeded, checks that the provider made it
// once, and returns the calls that it took.
func (s shop) requireRefundedOnce(receipt testkit.Answer) []sandbox.Attempt {
	s.t.Helper()
	requireStatus(s.t, http.StatusAccepted, receipt)
	order := receipt.Text("order_id")
	s.jobDone("refund-charge", order)
	require.Equal(s.t, "succeeded", s.refundStatus(order))
	require.Len(s.t, s.refunds(order, "succeeded"), 1)
	require.Equal(s.t, receipt.Text("id"), s.refunds(order, "succeeded")[0].RefundID)
	attempts := s.attempts("refund", order)
	return attempts
}

// Ensure a refund whose outcome is unknown is made once: every attempt but the first lists the refunds before it asks. Only
// after an answered 5xx, and not before the provider's lag has passed, the key has its next generation.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestRefundIsMadeOnceWhateverBecomesOfAnAnswer(t *testing.T) {
	t.Parallel()
	for kind, suffixes := range map[string][]string{
		sandbox.FaultDrop: {""}, sandbox.FaultConflict409: {""}, sandbox.FaultRateLimit429: {""}, sandbox.FaultHold: {""},
		sandbox.FaultError500: {""}, sandbox.FaultError500Undone: {"", ":2"}, sandbox.FaultError500Before: {"", ":2"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t, "PROVIDER_TIMEOUT", map[bool]string{true: "2s", false: "20s"}[kind == sandbox.FaultHold])
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.faults(fault("refund", kind, 1))
			receipt := s.refund(order, "r", 1000)
			requireStatus(t, http.StatusAccepted, receipt)
			s.jobFailed("refund-charge", order)
			require.EqualValues(t, 1000, s.payment(order).Number("refunded.amount"), "a pending refund holds its amount")
			if len(suffixes) > 1 {
				s.runNow("refund-charge", order)
				s.awaitJob("refund-charge", order, `attempt >= 2 AND state <> 'running'`)
				require.Len(t, s.attempts("refund", order), 1, "asked again before the provider's lag has passed")
				s.exec(`UPDATE refunds SET key_failed_at = key_failed_at - interval '2 minutes'`)
				s.runNow("refund-charge", order)
			}
			var want []string
			for _, suffix := range suffixes {
				want = append(want, "refund:default:"+receipt.Text("id")+suffix)
			}
			require.Equal(t, want, keys(s.requireRefundedOnce(receipt)))
		})
	}
}

// Ensure a worker that is killed after the provider has refunded leaves a job that its successor ends, with one refund.
func TestRefundSurvivesAKilledWorker(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	first := s.process()
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultHold, 1))
	receipt := s.refund(order, "r", 1000)
	s.held(1)
	first.Kill()
	require.Equal(t, "pending", s.refundStatus(order))
	s.timePasses()
	s.process()
	s.requireRefundedOnce(receipt)
}

// Ensure two workers that have the same refund's job at once refund once, and that the one whose answer comes after the
// other has recorded it is done.
func TestRefundIsRecordedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultHold, 1))
	receipt := s.refund(order, "r", 1000)
	s.held(1)
	s.enqueueRefund(order, receipt.Text("id"))
	testkit.Eventually(t, "the other job", func() bool { return s.refundStatus(order) == "succeeded" })
	recorded := s.payment(order).Header.Get("ETag")
	s.Sandbox.ClearFaults()
	s.requireRefundedOnce(receipt)
	require.Equal(t, recorded, s.payment(order).Header.Get("ETag"))
	require.Zero(t, s.Count(t, jobOf+` AND cardinality(errors) > 0`, "refund-charge", order))
}

// Ensure a refund that the provider declines is visible as failed and gives its amount back to the balance.
func TestRefundDeclinedFreesTheBalance(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultDecline, 1))
	requireStatus(t, http.StatusAccepted, s.refund(order, "one", shopTotal))
	s.jobDone("refund-charge", order)
	require.Equal(t, "failed", s.refundStatus(order))
	require.Zero(t, s.payment(order).Number("refunded.amount"))
	require.Len(t, s.attempts("refund", order), 1, "a definite no was not the end")

	requireStatus(t, http.StatusAccepted, s.refund(order, "two", shopTotal))
	s.jobDone("refund-charge", order)
	require.EqualValues(t, shopTotal, s.payment(order).Number("refunded.amount"))
	require.Len(t, s.refunds(order, "succeeded"), 1)
}

// Ensure a refund that the provider has accepted and not yet made stays pending until it is made: the answer that the key
// repeats stays pending, so the refunds are listed.
func TestRefundPendingAtTheProviderIsFollowed(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_pendingRefund")
	s.faults(fault(sandbox.OpList, sandbox.FaultError500Before, 0)) // it cannot be read
	receipt := s.refund(order, "r", 1000)
	s.jobFailed("refund-charge", order)
	require.Equal(t, "pending", s.refundStatus(order))
	s.Sandbox.ClearFaults()
	s.requireRefundedOnce(receipt)
}

// Ensure the retry of an accepted refund gets the same receipt and refunds nothing more, whatever has become of it.
func TestRefundIsReplayed(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	first := s.refund(order, "r", 2000)
	s.requireRefundedOnce(first)
	require.Equal(t, "/v1/orders/"+order+"/payment", first.Header.Get("Location"))
	require.Equal(t, "pending", first.Text("status"))
	requireReplay(t, first, s.refund(order, "r", 2000))
	requireRefused(t, s.refund(order, "r", 500), http.StatusUnprocessableEntity, "idempotency_key_reused")
	requireRefused(t, s.refund(order, "another", 2000), http.StatusConflict, "refund_exceeds_charge")
	s.requireRefundedOnce(first)
}

// Ensure a refund whose key the provider has pruned meanwhile is found in the list and not made again.
func TestRefundWithAPrunedKeyIsFound(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultDrop, 1))
	receipt := s.refund(order, "r", 1000)
	s.jobFailed("refund-charge", order)
	s.Sandbox.ForgetKeys()
	s.runNow("refund-charge", order)
	require.Len(t, s.requireRefundedOnce(receipt), 1)
}

// Ensure a refund that looks as if it had never been asked for, as after a restore, is looked up once it is old.
func TestRefundOfARestoreIsFound(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	receipt := s.refund(order, "r", 1000)
	s.requireRefundedOnce(receipt)
	s.exec(`UPDATE refunds SET status = 'pending', key_generation = 0, provider_id = '', created_at = created_at - interval '25 hours'`)
	s.Sandbox.ForgetKeys()
	s.enqueueRefund(order, receipt.Text("id"))
	s.jobDone("refund-charge", order)
	require.Len(t, s.requireRefundedOnce(receipt), 1)
}

// Ensure a refund is not asked for blindly while the list cannot be read.
func TestRefundWaitsForTheList(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultDrop, 1), fault(sandbox.OpList, sandbox.FaultError500Before, 0))
	receipt := s.refund(order, "r", 1000)
	s.jobFailed("refund-charge", order)
	s.runNow("refund-charge", order)
	s.awaitJob("refund-charge", order, `attempt >= 2 AND state <> 'running'`)
	require.Equal(t, "pending", s.refundStatus(order))
	s.Sandbox.ClearFaults()
	s.runNow("refund-charge", order)
	require.Len(t, s.requireRefundedOnce(receipt), 1)
}

// Ensure a refund that failed at the provider before this service learned of it is recorded as failed, alerted, and back in
// the balance.
func TestRefundFoundFailedIsAlerted(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultDrop, 1))
	requireStatus(t, http.StatusAccepted, s.refund(order, "r", 1000))
	s.jobFailed("refund-charge", order)
	made := s.refunds(order, "succeeded")
	require.Len(t, made, 1)
	require.NoError(t, s.Sandbox.FailRefund(made[0].ID))
	s.runNow("refund-charge", order)
	s.jobDone("refund-charge", order)
	require.Equal(t, "failed", s.refundStatus(order))
	require.Zero(t, s.payment(order).Number("refunded.amount"))
	require.EqualValues(t, 1, scrape(t, s.Metrics["worker"]).Value("orders_payment_findings_total", "kind", "refund_failed"))
}
