package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure the charge of an order that is not here is alerted at once, and given back only after UNMATCHED_CHARGE_DELAY,
// once, whatever becomes of the refund's answer.
func TestReconcileReturnsAnUnknownCharge(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"", sandbox.FaultDrop, sandbox.FaultError500, sandbox.FaultError500Undone, sandbox.FaultError500Before,
		sandbox.FaultConflict409, sandbox.FaultDecline,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := openShopToReconcile(t)
			order, intent := s.unknownCharge()
			for range 3 {
				s.reconcile()
				require.True(t, s.noted(intent))
				require.EqualValues(t, 1, s.found("worker", "unknown_charge"))
				require.Empty(t, s.Sandbox.Ledger().Refunds, "returned before a person could look")
			}
			s.delayPasses()
			if kind != "" {
				s.faults(fault("refund", kind, 1))
			}
			for range 3 {
				s.reconcile()
			}
			s.requireReturnedOnce(order, intent)
		})
	}
}

// Ensure a worker that is killed after the provider has given an unknown charge back, and while it looks at the charge again,
// leaves both to a successor, which gives nothing back again.
func TestReconcileReturnsAnUnknownChargeOnceAcrossACrash(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order, intent := s.unknownCharge()
	s.reconcile()
	s.delayPasses()
	s.StopWorker(t)
	s.faults(fault("refund", sandbox.FaultHold, 1), fault(sandbox.OpRetrieveIntent, sandbox.FaultHold, 1))
	s.Enqueue(t, testkit.JobReconcile)
	first := s.process()
	s.held(2) // in reconcile-payments and in settle-payment
	first.Kill()
	s.timePasses()
	s.Sandbox.ClearFaults()
	s.StartWorker(t)
	s.reconcile()
	s.requireReturnedOnce(order, intent)
}

// Ensure the charge of an unknown order whose row was brought back meanwhile is the order's again and is kept.
func TestReconcileKeepsAChargeWhoseOrderCameBack(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	s.exec(`CREATE TABLE test_payments AS SELECT * FROM payments`)
	s.exec(`DELETE FROM payments`)
	s.reconcile()
	require.True(t, s.noted(s.intentOf(order)))
	s.exec(`INSERT INTO payments SELECT * FROM test_payments`)
	s.delayPasses()
	for range 2 {
		s.reconcile()
	}
	require.Empty(t, s.Sandbox.Ledger().Refunds)
	require.False(t, s.noted(s.intentOf(order)))
	require.Equal(t, "succeeded", s.payment(order).Text("status"))
}

// Ensure a second charge of an order goes back at once, in one refund, and the payment stays as it is.
func TestReconcileReturnsASecondCharge(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	second := s.chargeThere(shopTotal, ofOrder(order))
	for range 3 {
		s.reconcile()
	}
	s.requireReturnedOnce(order, second)
	require.EqualValues(t, 1, s.found("worker", "second_charge"))
	p := s.payment(order)
	require.Equal(t, "succeeded", p.Text("status"))
	require.Zero(t, p.Number("refunded.amount"))
}

// Ensure a charge whose answer was lost, so that the payment was given up here, is adopted and refunded in full.
func TestReconcileAdoptsAChargeThatWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"canceled", "failed"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			s := openShopToReconcile(t)
			order := s.placePaid("pm_card_visa")
			s.giveUpCharge(order, status)
			s.reconcile()
			s.refundedOnce(order)
			s.requireCancelled(order)
			require.EqualValues(t, 1, s.found("worker", "late_charge"))
		})
	}
}

// Ensure a pending payment whose charge is made there, and whose own intent was never confirmed, takes that charge and is
// not charged again.
func TestReconcileAdoptsTheChargeOfAnotherIntent(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultError500Before, 0))
	order := s.place("pm_card_visa")
	s.jobFailed("charge-order", order)
	s.exec(lostJobs["deleted"], "charge-order")
	other := s.chargeThere(shopTotal, ofOrder(order))
	s.Sandbox.ClearFaults()
	s.reconcile()
	require.Equal(t, "succeeded", s.payment(order).Text("status"))
	require.Equal(t, other, queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order))
	require.Equal(t, 1, s.charged(order))
}

// Ensure a refund that is there and not here becomes this service's: one that a restore has lost, under its own id, and one
// that was made by hand and bears no metadata.
func TestReconcileAdoptsRefunds(t *testing.T) {
	t.Parallel()
	for name, byHand := range map[string]bool{"lost in a restore": false, "made by hand": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopToReconcile(t)
			order := s.placePaid("pm_card_visa")
			if byHand {
				s.refundThere(s.intentOf(order), 1000, nil)
			} else {
				s.requireRefundedOnce(s.refund(order, "r", 1000))
				s.loseRefund(order)
			}
			s.reconcile()
			made := s.refunds(order, "succeeded")
			require.Len(t, made, 1)
			require.Equal(t, made[0].ID, queryValue[string](s, `SELECT provider_id FROM refunds WHERE order_id = $1`, order))
			if !byHand {
				require.Equal(t, made[0].RefundID, queryValue[string](s, `SELECT id::text FROM refunds WHERE order_id = $1`, order))
			}
			require.EqualValues(t, 1000, s.payment(order).Number("refunded.amount"))
			require.EqualValues(t, 1, s.found("worker", "refund_adopted"))
			requireRefused(t, s.refund(order, "all", shopTotal), http.StatusConflict, "refund_exceeds_charge")
		})
	}
}

// Ensure a refund that was made by hand, and is still pending when it is adopted, is followed and not made a second time.
func TestReconcileFollowsAnAdoptedRefund(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	s.refundThere(s.intentOf(order), 1000, nil)
	s.reconcile()
	s.exec(`UPDATE refunds SET status = 'pending'`)
	s.enqueueRefund(order, queryValue[string](s, `SELECT id::text FROM refunds WHERE order_id = $1`, order))
	s.jobDone("refund-charge", order)
	require.Equal(t, "succeeded", s.refundStatus(order))
	require.Len(t, s.refunds(order, "succeeded"), 1)
}

// Ensure a refund that exceeds what the payment has left is alerted and changes nothing.
func TestReconcileLeavesARefundThatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	s.exec(`INSERT INTO refunds (tenant_id, order_id, id, amount, status, reason, created_at)
		VALUES ('default', $1, gen_random_uuid(), 2000, 'succeeded', 'paid in cash', now())`, order)
	s.refundThere(s.intentOf(order), 1500, nil)
	s.reconcile()
	require.Positive(t, s.found("worker", "refund_unexplained"))
	require.EqualValues(t, 2000, s.payment(order).Number("refunded.amount"))
	require.Equal(t, 1, s.Count(t, `refunds`))

	s.loseRefund(order) // a person has corrected the books
	s.reconcile()
	require.EqualValues(t, 1500, s.payment(order).Number("refunded.amount"))
}

// Ensure a charge over another amount than the payment's is alerted and changes nothing, and that runs do not pile up jobs
// about it.
func TestReconcileLeavesAnotherAmount(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	before := s.payment(order).Header.Get("ETag")
	odd := s.chargeThere(shopTotal-1, ofOrder(order))
	for range 4 {
		runNow(t, s.Service, testkit.JobReconcile)
		s.jobFailed("settle-payment", order)
	}
	require.LessOrEqual(t, s.Count(t, jobOf, "settle-payment", order), 2, "one that ran and one that waits")
	require.Positive(t, s.found("worker", "mismatch"))
	require.Equal(t, before, s.payment(order).Header.Get("ETag"))
	require.Zero(t, s.Count(t, `unmatched_charges`))
	require.Empty(t, s.Sandbox.Ledger().Refunds)
	s.exec(`DELETE FROM river_job WHERE state <> 'running' AND kind = 'settle-payment'`)
	s.exec(`INSERT INTO unmatched_charges (tenant_id, intent_id, order_id, kind, amount, currency, key_generation, refund_id,
			created_at, returned_at)
		VALUES ('default', $1, $2, 'second_charge', $3, 'EUR', 1, $4, now(), now())`,
		odd, order, shopTotal-1, s.refundThere(odd, shopTotal-1, nil)) // a person gives it back and notes it
}

// Ensure a refund that fails days later is found although the provider's event was never delivered, and although newer
// refunds have moved the watermark of refunds past it.
func TestReconcileFindsARefundThatFailedLate(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order := s.placePaid("pm_card_visa")
	s.requireRefundedOnce(s.refund(order, "r", 1000))
	failed := s.refunds(order, "succeeded")[0].ID
	s.Sandbox.AdvanceClock(sandboxDay)
	s.refundThere(s.chargeThere(100, nil), 100, nil)
	s.reconcile()
	s.Sandbox.AdvanceClock(sandboxDay)
	s.compared("refunds")
	require.NoError(t, s.Sandbox.FailRefund(failed))
	s.reconcile()
	require.Equal(t, "failed", s.refundStatus(order))
	require.Zero(t, s.payment(order).Number("refunded.amount"))
	require.EqualValues(t, 1, s.found("worker", "refund_failed_late"))
}

// Ensure what other systems keep in the same account is left alone, whatever its metadata are.
func TestReconcileLeavesTheObjectsOfOthersAlone(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	for _, metadata := range []map[string]string{
		nil, {"order_id": uuid.NewString()}, {"order_id": "7", "tenant_id": "default"}, {"invoice": "x"},
	} {
		intent := s.chargeThere(shopTotal, metadata)
		s.refundThere(intent, 100, metadata)
	}
	s.reconcile()
	require.Zero(t, s.Count(t, `unmatched_charges`))
	require.Zero(t, s.Count(t, `river_job WHERE kind = 'settle-payment'`))
	require.Len(t, s.Sandbox.Ledger().Refunds, 4)
}

// rewritten makes the next worker reach the provider through a proxy that replaces text in the answers to reads.
func (s shop) rewritten(replace func(body string) string) {
	s.t.Helper()
	target, err := url.Parse(s.Env["STRIPE_BASE_URL"])
	require.NoError(s.t, err)
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method != http.MethodGet {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			changed := []byte(replace(string(body)))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(changed)), int64(len(changed))
			r.Header.Set("Content-Length", strconv.Itoa(len(changed)))
			return err
		},
	}
	server := httptest.NewServer(&proxy)
	s.t.Cleanup(server.Close)
	s.Env["STRIPE_BASE_URL"] = server.URL
}

// Ensure an object in a status that this service does not know keeps no other object from being compared.
func TestReconcilePassesAnUnknownStatus(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	odd, err := s.stripe().V1PaymentIntents.Create(t.Context(), &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(100), Currency: stripe.String("eur"), PaymentMethod: stripe.String("pm_card_visa"),
		PaymentMethodTypes: []*string{stripe.String("card")}, Metadata: ofOrder(uuid.NewString()),
	})
	require.NoError(t, err)
	refunded := s.chargeThere(100, ofOrder(uuid.NewString()))
	s.refundThere(refunded, 100, ofOrder(uuid.NewString()))
	_, intent := s.unknownCharge()
	s.rewritten(func(body string) string {
		return strings.ReplaceAll(body, `"requires_confirmation"`, `"requires_capture"`)
	})
	s.StartWorker(t)
	s.reconcile()
	require.True(t, s.noted(intent))
	require.False(t, s.noted(odd.ID))
	require.Equal(t, 3, s.Count(t, `reconcile_watermarks WHERE from_at IS NOT NULL`))
}

// Ensure one charge that cannot be given back keeps no other from its customer.
func TestReconcileReturnsTheOthers(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	disputed, blocked := s.unknownCharge()
	s.reconcile()
	order, intent := s.unknownCharge()
	s.reconcile()
	require.NoError(t, s.Sandbox.OpenDispute(blocked))
	s.delayPasses()
	s.reconcile()
	s.requireReturnedOnce(order, intent)
	require.Empty(t, s.refunds(disputed, "succeeded"))
	require.Positive(t, s.found("worker", "refund_refused"))
}

// Ensure two workers that reconcile at once note and return a charge once.
func TestReconcileTwiceAtOnce(t *testing.T) {
	t.Parallel()
	s := openShopToReconcile(t)
	order, intent := s.unknownCharge()
	s.faults(fault(sandbox.OpList, sandbox.FaultHold, 2))
	one, two := s.Enqueue(t, testkit.JobReconcile), s.Enqueue(t, testkit.JobReconcile)
	s.held(2)
	s.Sandbox.ClearFaults()
	awaitJob(t, s.Service, one)
	awaitJob(t, s.Service, two)
	testkit.Eventually(t, "charge noted", func() bool { return s.noted(intent) })
	s.settled()
	testkit.CheckRest(t, s.Service)
	s.delayPasses()
	s.faults(fault("refund", sandbox.FaultHoldBefore, 0))
	one, two = s.Enqueue(t, testkit.JobReconcile), s.Enqueue(t, testkit.JobReconcile)
	s.held(1)
	s.Sandbox.ClearFaults()
	awaitJob(t, s.Service, one)
	awaitJob(t, s.Service, two)
	s.requireReturnedOnce(order, intent)
	require.EqualValues(t, 1, s.found("worker", "unknown_charge"))
}
