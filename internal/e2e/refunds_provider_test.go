package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
	"example.com/orders/internal/testkit"
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
	requireSame(s.t, "refund:"+receipt.Text("id"), attempts)
	return attempts
}

// Ensure a refund whose outcome is unknown is asked for again with the same key and the same parameters: it is neither
// doubled nor forgotten, and visible as pending until it is known.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestRefundIsMadeOnceWhateverBecomesOfAnAnswer(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		sandbox.FaultDrop, sandbox.FaultError500, sandbox.FaultError500Before, sandbox.FaultConflict409,
		sandbox.FaultRateLimit429,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.StartWorker(t)
			order := s.placePaid("pm_card_visa")
			s.faults(fault("refund", kind, 0))
			receipt := s.refund(order, "r", 1000)
			requireStatus(t, http.StatusAccepted, receipt)
			s.jobFailed("refund-charge", order)
			require.Equal(t, "pending", s.refundStatus(order))
			require.EqualValues(t, 1000, s.payment(order).Number("refunded.amount"), "a pending refund holds its amount")
			s.Sandbox.ClearFaults()
			require.GreaterOrEqual(t, len(s.requireRefundedOnce(receipt)), 2)
		})
	}
}

// Ensure a refund that the provider makes too slowly is not made twice.
func TestRefundThatTimesOutIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, "PROVIDER_TIMEOUT", "500ms")
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultHold, 1))
	require.GreaterOrEqual(t, len(s.requireRefundedOnce(s.refund(order, "r", 1000))), 2)
}

// Ensure a worker that is killed after the provider has refunded leaves a job that its successor ends, with one refund.
func TestRefundSurvivesAKilledWorker(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	first := s.process()
	order := s.placePaid("pm_card_visa")
	s.faults(fault("refund", sandbox.FaultHold, 1))
	receipt := s.refund(order, "r", 1000)
	s.held(1)
	first.Kill()
	require.Equal(t, "pending", s.refundStatus(order))
	s.timePasses()
	s.successor()
	s.requireRefundedOnce(receipt)
}

// Ensure two workers that have the same refund's job at once refund once, and that the one whose answer comes after the
// other has recorded it is done.
func TestRefundIsRecordedOnceByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
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
	s := openShop(t)
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

// Ensure a refund that the provider has accepted and not yet made stays pending until it is made: the answer that the
// key repeats says pending for ever, so the refund is read.
func TestRefundPendingAtTheProviderIsFollowed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_pendingRefund")
	s.faults(fault("search", sandbox.FaultError500, 0)) // it cannot be read
	receipt := s.refund(order, "r", 1000)
	s.jobFailed("refund-charge", order)
	require.Equal(t, "pending", s.refundStatus(order))
	s.Sandbox.ClearFaults()
	s.requireRefundedOnce(receipt)
}

// Ensure the retry of an accepted refund gets the same receipt and refunds nothing more, whatever has become of it.
func TestRefundIsReplayed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
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

// refundPastHorizon asks for a refund, lets its first attempt meet a fault, moves that attempt beyond the horizon and lets
// the provider forget its keys. No worker runs when it returns, and no fault is left.
func (s shop) refundPastHorizon(method, kind string) (receipt testkit.Answer) {
	s.t.Helper()
	s.StartWorker(s.t)
	order := s.placePaid(method)
	s.faults(fault("refund", kind, 0))
	receipt = s.refund(order, "r", 1000)
	requireStatus(s.t, http.StatusAccepted, receipt)
	s.jobFailed("refund-charge", order)
	s.StopWorker(s.t)
	s.exec(`UPDATE refunds SET attempted_at = attempted_at - interval '21 hours' WHERE order_id = $1`, order)
	s.Sandbox.ForgetKeys()
	s.Sandbox.ClearFaults()
	return receipt
}

// Ensure a refund beyond its horizon is looked up before anybody asks again: one that was made is found, one that was not
// is made once.
func TestRefundPastItsHorizonIsLookedUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fault string
		more        int
	}{
		{"made and forgotten", sandbox.FaultError500, 0},
		{"never made", sandbox.FaultError500Before, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			receipt := s.refundPastHorizon("pm_card_visa", test.fault)
			asked := len(s.attempts("refund", receipt.Text("order_id")))
			s.StartWorker(t)
			require.Len(t, s.requireRefundedOnce(receipt), asked+test.more)
		})
	}
}

// Ensure a refund that cannot be looked up is not asked for blindly; the job goes on trying, and nothing is forgotten.
func TestRefundPastItsHorizonWaitsForTheLookup(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	receipt := s.refundPastHorizon("pm_card_visa", sandbox.FaultError500)
	order := receipt.Text("order_id")
	asked := len(s.attempts("refund", order))
	failures := queryValue[int](s, `SELECT cardinality(errors) FROM river_job WHERE kind = 'refund-charge'`)
	s.faults(fault("search", sandbox.FaultError500, 0))
	s.StartWorker(t)
	testkit.Eventually(t, "another failure", func() bool {
		return queryValue[int](s, `SELECT cardinality(errors) FROM river_job WHERE kind = 'refund-charge'`) > failures
	})
	require.Equal(t, "pending", s.refundStatus(order))
	require.Len(t, s.attempts("refund", order), asked)
	s.Sandbox.ClearFaults()
	s.runNow("refund-charge", order)
	require.Len(t, s.requireRefundedOnce(receipt), asked)
}

// Ensure a refund that has failed at the provider while nobody was listening is found as failed.
func TestRefundPastItsHorizonIsFoundFailed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	receipt := s.refundPastHorizon("pm_card_refundFail", sandbox.FaultError500)
	order := receipt.Text("order_id")
	s.StartWorker(t)
	s.jobDone("refund-charge", order)
	require.Equal(t, "failed", s.refundStatus(order))
	require.Zero(t, s.payment(order).Number("refunded.amount"))
	require.Empty(t, s.refunds(order, "succeeded"))
}
