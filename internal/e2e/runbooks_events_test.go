package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure the page on provider events shows how events are answered and what their jobs do, and that what it tells to run
// settles a payment whose event never came.
func TestRunbookProviderEvents(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	ops := httptest.NewServer(o.Metrics["api"].Handler())
	t.Cleanup(ops.Close)
	o.env["API_OPS"] = ops.URL
	o.work()
	order := o.placePaid("pm_card_visa")
	requireStatus(t, http.StatusAccepted, o.refund(order, "r", shopTotal))
	o.jobDone("refund-charge", order)
	o.settled()
	requireStatus(t, http.StatusBadRequest, o.deliverSigned(o.anEvent(order), "t=1,v1=00"))
	o.Sandbox.SetEventsURL("")
	require.NoError(t, o.Sandbox.FailRefund(o.refunds(order, "succeeded")[0].ID))
	require.Equal(t, "succeeded", o.refundStatus(order))

	out := o.follow("provider-events.md", []string{"Diagnose"})
	require.Contains(t, out, `code="invalid_signature"`)
	require.Contains(t, out, "payment_intent.succeeded")
	require.Contains(t, out, "refund.failed")
	o.follow("provider-events.md", []string{"Redeliver"}, "01a2299d-f76c-7627-b569-52ba45123348", order)
	testkit.Eventually(t, "failed refund", func() bool { return o.refundStatus(order) == "failed" })
}
