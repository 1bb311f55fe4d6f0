package e2e

import (
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure the page on restoring from a backup loses no money, although the provider and the callers are ahead of the
// restored database and the provider has pruned its keys: reconciliation alone adopts the charges and refunds made since
// and makes none again, gives back the charge of an order that is gone, once and only after its delay, and leaves nothing
// undecided; what was given back cannot be shipped; a version that was given out since never matches.
func TestRunbookRestoreFromBackup(t *testing.T) {
	t.Parallel()
	o := openForOperators(t, "pg_dump", "pg_restore")
	// In the backup: paid orders, a refund and orders that the provider has not been asked for yet.
	worker := o.work()
	r := refundedSince{undone: []string{o.placePaid("pm_card_visa")}, partly: o.placePaid("pm_card_visa")}
	worker.Stop()
	before := o.place("pm_card_visa")
	r.undone = append(r.undone, o.place("pm_card_visa"))
	requireStatus(t, http.StatusAccepted, o.refund(r.partly, "asked", shopTotal/6))
	tag := o.product(shopSKU).Header.Get("ETag")
	o.sh(`pg_dump -Fc -f orders.dump "$MIGRATE_DATABASE_URL"`)

	// Since then: the charges and the refund are made, the product changed, one more order placed and paid, money given back.
	worker = o.work()
	o.alice.PaymentStatus(before, "succeeded")
	lost := o.placePaid("pm_card_visa")
	edited := o.edit(shopSKU, tag, shopTotal/2)
	requireStatus(t, http.StatusOK, edited)
	o.giveBackSince(r)
	o.settled()
	worker.Stop()

	o.dayPasses()
	o.alice.PaymentStatus(before, "succeeded")
	require.Equal(t, 1, o.charged(before), "charged again")
	require.Equal(t, http.StatusNotFound, o.order(lost).Status)
	// An edit of the restored product must not get the version that the lost edit had.
	requireStatus(t, http.StatusOK, o.edit(shopSKU, o.product(shopSKU).Header.Get("ETag"), shopTotal/2))
	requireRefused(t, o.edit(shopSKU, edited.Header.Get("ETag"), 1), http.StatusConflict, "version_conflict")
	o.requireGivenBack(r)

	require.Empty(t, o.refunds(lost, "succeeded"), "given back before a person could look")
	list := o.follow("restore-from-backup.md", []string{"5."}) // no parcel of the lost order has left
	require.Contains(t, list, lost)
	o.delayPasses()
	for range 2 {
		o.follow("restore-from-backup.md", []string{"4."})
		testkit.Eventually(t, "charge given back", func() bool { return len(o.refunds(lost, "succeeded")) == 1 })
	}
	require.EqualValues(t, shopTotal, o.refunds(lost, "succeeded")[0].Amount)
	o.settled()
	testkit.CheckRest(t, o.Service)
	done := o.follow("restore-from-backup.md", []string{"Done when"})
	require.NotContains(t, done, "pending")
	require.Regexp(t, `not_yet_given_back *\n-+\n +0\n`, done)
}

// dayPasses restores the backup a day later, with the keys pruned, starts the service on it and reconciles, as the page
// tells to.
func (o *operator) dayPasses() {
	o.t.Helper()
	o.StopAPI(o.t)
	o.Sandbox.SetEventsURL("")
	o.Sandbox.AdvanceClock(25 * time.Hour)
	o.env["RESTORED"] = o.restored("MIGRATE_DATABASE_URL")
	roles, err := filepath.Abs("../../deploy/roles.sql")
	require.NoError(o.t, err)
	o.follow("restore-from-backup.md", []string{"2."}, "deploy/roles.sql", roles)
	for _, table := range []string{"orders", "payments", "refunds"} {
		o.sh(`psql "$RESTORED" -c "UPDATE ` + table + ` SET created_at = created_at - interval '25 hours'"`)
	}
	o.follow("restore-from-backup.md", []string{"3."})
	o.move()
	o.Sandbox.SetEventsURL("")
	began := queryValue[time.Time](o.shop, `SELECT now()`)
	o.work()
	o.follow("restore-from-backup.md", []string{"4."})
	testkit.Eventually(o.t, "a whole pass of every stream", func() bool {
		return o.Count(o.t, `reconcile_watermarks WHERE updated_at > $1 AND after_id = ''`, began) == 3
	})
	o.settled()
}

// refundedSince is orders of the backup whose money goes back after it.
type refundedSince struct {
	undone []string // cancelled
	partly string   // a sixth of it was asked for before the backup, a third after it
}

func (o *operator) giveBackSince(r refundedSince) {
	o.t.Helper()
	for _, order := range r.undone {
		o.alice.PaymentStatus(order, "succeeded")
		requireStatus(o.t, http.StatusOK, o.cancel(order))
		o.refundedOnce(order)
	}
	requireStatus(o.t, http.StatusAccepted, o.refund(r.partly, "partly", shopTotal/3))
	o.jobDone("refund-charge", r.partly)
}

// requireGivenBack checks that the restored service knows of every refund, makes none twice and ships nothing of what
// was given back in full.
func (o *operator) requireGivenBack(r refundedSince) {
	o.t.Helper()
	list := o.follow("restore-from-backup.md", []string{"5."})
	for _, order := range r.undone {
		o.alice.PaymentStatus(order, "succeeded")
		read := o.order(order)
		shipped := shipment("1").send(o.shop, order, read.Header.Get("ETag"))
		requireRefused(o.t, shipped, http.StatusConflict, "order_not_shippable")
		require.Contains(o.t, list, order)
		requireStatus(o.t, http.StatusOK, o.cancel(order))
		o.requireRecorded(order, shopTotal)
	}
	require.NotContains(o.t, o.follow("restore-from-backup.md", []string{"5."}), r.undone[0])
	require.EqualValues(o.t, 100-2*2, o.OnHand(o.t, shopSKU), "units that two open orders leave")
	packed := o.follow("restore-from-backup.md", []string{"6."})
	require.Contains(o.t, packed, r.partly)
	require.NotContains(o.t, packed, r.undone[0])
	require.Regexp(o.t, shopSKU+` +\| +100\n`, packed)
	require.Len(o.t, o.refunds(r.partly, "succeeded"), 2, "the refund of the backup was made again")
	o.requireRecorded(r.partly, shopTotal/2)
	requireRefused(o.t, o.refund(r.partly, "all", shopTotal), http.StatusConflict, "refund_exceeds_charge")
}

// requireRecorded checks that the refunds of an order are the provider's, under the same ids.
func (o *operator) requireRecorded(order string, cents int64) {
	o.t.Helper()
	require.Equal(o.t, cents, o.payment(order).Number("refunded.amount"))
	for _, made := range o.refunds(order, "succeeded") {
		require.Equal(o.t, 1, o.Count(o.t, `refunds WHERE order_id = $1 AND id = $2 AND provider_id = $3 AND status = 'succeeded'
			AND amount = $4`, order, made.RefundID, made.ID, made.Amount))
	}
}

// restored is one of the operator's addresses, of the restored database.
func (o *operator) restored(variable string) string { return restoredOf(o.t, o.env[variable]) }

// restoredOf is the address of the restored database on the server of another.
func restoredOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Path = "/orders_restored"
	return u.String()
}

// move starts the API on the restored database, to which everything goes from now on.
func (o *operator) move() {
	o.t.Helper()
	o.Env["DATABASE_URL"], o.DatabaseURL = o.restored("DATABASE_URL"), o.restored("MIGRATE_DATABASE_URL")
	o.DB = o.moved
	o.StartAPI(o.t)
	o.alice = o.As(o.t, "alice")
}
