package e2e

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/pgtest"
	"example.com/orders/internal/sandbox"
)

// Ensure the page on restoring from a backup loses no money, although the provider and the callers are ahead of the
// restored database: a charge made since the backup is found, not made again, even when the provider has forgotten its key;
// a charge of an order that is gone is refunded; what was refunded since cannot be refunded again, and what was cancelled
// since cannot be shipped; a version that was given out since never matches.
func TestRunbookRestoreFromBackup(t *testing.T) {
	t.Parallel()
	o := openForOperators(t, "pg_dump", "pg_restore")
	// In the backup: paid orders, and orders whose charge nobody has asked for yet, all of a day ago.
	worker := o.work()
	r := refundedSince{
		undone: []string{o.placePaid("pm_card_visa")}, partly: o.placePaid("pm_card_visa"),
		slow: o.placePaid("pm_card_pendingRefund"),
	}
	worker.Stop()
	before := o.place("pm_card_visa")
	r.undone = append(r.undone, o.place("pm_card_visa"))
	o.exec(`UPDATE orders SET created_at = created_at - interval '1 day'`)
	o.exec(`UPDATE payments SET created_at = created_at - interval '1 day'`)
	tag := o.product(shopSKU).Header.Get("ETag")
	o.sh(`pg_dump -Fc -f orders.dump "$MIGRATE_DATABASE_URL"`)

	// Since then: the charges are made, the product changed, one more order placed and paid, money given back.
	worker = o.work()
	o.alice.PaymentStatus(before, "succeeded")
	lost := o.placePaid("pm_card_visa")
	edited := o.edit(shopSKU, tag, shopTotal/2)
	requireStatus(t, http.StatusOK, edited)
	o.giveBackSince(r)

	worker.Stop()
	o.Sandbox.ClearFaults()
	o.Sandbox.ForgetKeys()
	o.StopAPI(t)
	o.env["RESTORED"] = o.restored("MIGRATE_DATABASE_URL")
	roles, err := filepath.Abs("../../deploy/roles.sql")
	require.NoError(t, err)
	o.follow("restore-from-backup.md", []string{"2.", "3."}, "deploy/roles.sql", roles)
	o.follow("restore-from-backup.md", []string{"3."}) // the second time nothing is missing
	o.move()
	o.work()
	o.follow("restore-from-backup.md", []string{"4."})
	o.alice.PaymentStatus(before, "succeeded")
	require.Equal(t, 1, o.charged(before), "charged again")
	require.Equal(t, http.StatusNotFound, o.order(lost).Status)
	// An edit of the restored product must not get the version that the lost edit had.
	requireStatus(t, http.StatusOK, o.edit(shopSKU, o.product(shopSKU).Header.Get("ETag"), shopTotal/2))
	requireRefused(t, o.edit(shopSKU, edited.Header.Get("ETag"), 1), http.StatusConflict, "version_conflict")

	o.requireGivenBack(r)

	charge := ""
	for _, c := range o.Sandbox.Ledger().Charges {
		if c.OrderID == lost {
			charge = c.ID
		}
	}
	for range 2 { // the second time refunds nothing more
		out := o.follow("restore-from-backup.md", []string{"5."}, "pi_N7XJ7YAWZS5MSBPDMEXGA77YHH", charge)
		require.Contains(t, out, lost)
		require.NotContains(t, strings.ReplaceAll(out, charge, ""), before)
	}
	back := o.refunds(lost, "succeeded")
	require.Len(t, back, 1)
	require.EqualValues(t, shopTotal, back[0].Amount)
	require.NotContains(t, o.follow("restore-from-backup.md", []string{"Done when"}), "pending")
}

// refundedSince is orders of the backup whose money goes back after it.
type refundedSince struct {
	undone []string // cancelled
	partly string   // a third of it is refunded
	slow   string   // so too, and the provider has not made it yet
}

// giveBackSince gives the money back. The last refund leaves the provider unreadable.
func (o *operator) giveBackSince(r refundedSince) {
	o.t.Helper()
	for _, order := range r.undone {
		o.alice.PaymentStatus(order, "succeeded")
		requireStatus(o.t, http.StatusOK, o.cancel(order))
		o.refundedOnce(order)
	}
	requireStatus(o.t, http.StatusAccepted, o.refund(r.partly, "partly", shopTotal/3))
	o.jobDone("refund-charge", r.partly)
	o.faults(fault(sandbox.OpList, sandbox.FaultError500Before, 0))
	requireStatus(o.t, http.StatusAccepted, o.refund(r.slow, "slow", shopTotal/3))
	o.jobFailed("refund-charge", r.slow)
	require.Len(o.t, o.refunds(r.slow, "pending"), 1)
}

// requireGivenBack checks that the restored service knows of every refund, makes none twice and ships nothing of what
// was given back in full.
func (o *operator) requireGivenBack(r refundedSince) {
	o.t.Helper()
	require.EqualValues(o.t, 100-3*2, o.OnHand(o.t, shopSKU), "units that three open orders leave")
	list := o.follow("restore-from-backup.md", []string{"6."})
	require.Contains(o.t, list, r.partly)
	require.Regexp(o.t, shopSKU+` +\| +100\n`, list)
	for _, order := range r.undone {
		o.alice.PaymentStatus(order, "succeeded")
		read := o.order(order)
		require.Equal(o.t, "cancelled", read.Text("status"))
		shipped := shipment("1").send(o.shop, order, read.Header.Get("ETag"))
		requireRefused(o.t, shipped, http.StatusConflict, "order_not_shippable")
		require.NotContains(o.t, list, order)
		o.requireRecorded(order, "succeeded", shopTotal)
	}
	o.requireRecorded(r.partly, "succeeded", shopTotal/3)
	o.requireRecorded(r.slow, "pending", shopTotal/3)
	o.enqueueRefund(r.slow, o.refunds(r.slow, "pending")[0].RefundID)
	for _, order := range []string{r.partly, r.slow} {
		requireRefused(o.t, o.refund(order, "all-"+order, shopTotal), http.StatusConflict, "refund_exceeds_charge")
		requireStatus(o.t, http.StatusAccepted, o.refund(order, "rest-"+order, shopTotal-shopTotal/3))
		o.jobDone("refund-charge", order)
		require.Equal(o.t, "open", o.order(order).Text("status"))
		require.Len(o.t, o.refunds(order, "succeeded"), 2)
	}
}

// requireRecorded checks that an order has one refund, which is the provider's only one.
func (o *operator) requireRecorded(order, status string, cents int64) {
	o.t.Helper()
	made := o.refunds(order, status)
	require.Len(o.t, made, 1)
	p := o.payment(order)
	require.Equal(o.t, cents, p.Number("refunded.amount"), string(p.Body))
	require.Equal(o.t, 1, o.Count(o.t, `refunds WHERE order_id = $1 AND id = $2 AND status = $3 AND amount = $4`,
		order, made[0].RefundID, status, cents))
}

// restored is one of the operator's addresses, of the restored database.
func (o *operator) restored(variable string) string {
	o.t.Helper()
	u, err := url.Parse(o.env[variable])
	require.NoError(o.t, err)
	u.Path = "/orders_restored"
	return u.String()
}

// move starts the API on the restored database, to which everything goes from now on.
func (o *operator) move() {
	o.t.Helper()
	o.Env["DATABASE_URL"], o.DatabaseURL = o.restored("DATABASE_URL"), o.restored("MIGRATE_DATABASE_URL")
	pgtest.Close(o.t, o.DB)
	o.DB = pgtest.Open(o.t, o.DatabaseURL)
	o.StartAPI(o.t)
	o.alice = o.As(o.t, "alice")
}
