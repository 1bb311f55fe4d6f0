package e2e

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure the page on payment findings shows a charge of an unknown order, a refused charge and a refund that failed late,
// each with what its log line says, and that it keeps the unknown charge from being refunded.
func TestRunbookPaymentFindings(t *testing.T) {
	t.Parallel()
	o := openForOperators(t)
	worker := o.work()
	refused := o.place("pm_card_unheardOf")
	o.jobFailed("charge-order", refused)
	order := o.placePaid("pm_card_visa")
	receipt := o.refund(order, "r", 1000)
	o.jobDone("refund-charge", order)
	require.NoError(t, o.Sandbox.FailRefund(o.refunds(order, "succeeded")[0].ID))
	lost := uuid.NewString()
	intent := o.chargeUnknown(lost)
	kinds := []string{"unknown_charge", "charge_refused", "refund_failed_late"}
	for _, kind := range kinds {
		testkit.Eventually(t, kind, func() bool { return strings.Contains(worker.Output(), `"kind":"`+kind+`"`) })
	}

	o.write("api.log", "")
	o.write("worker.log", worker.Output())
	out := o.follow("payment-findings.md", nil, "01a2299d-f76c-7627-b569-52ba45123348", lost)
	for _, kind := range kinds {
		require.Contains(t, out, `kind="`+kind+`"`)
		require.Contains(t, out, `"kind":"`+kind+`"`)
	}
	require.Contains(t, out, intent)
	require.Contains(t, out, receipt.Text("id"))
	require.Zero(t, o.Count(t, "unmatched_charges"))
}
