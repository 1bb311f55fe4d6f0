package e2e

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Ensure the page on restoring from a backup loses no money, although the provider and the callers are ahead of the
// restored database: a charge made since the backup is found, not made again, even when the provider has forgotten its key;
// a charge of an order that is gone is refunded; a version that was given out since never matches.
func TestRunbookRestoreFromBackup(t *testing.T) {
	t.Parallel()
	o := openForOperators(t, "pg_dump", "pg_restore")
	// An order of a day ago whose charge nobody has asked for yet, and a paid one: both are in the backup.
	before := o.place("pm_card_visa")
	o.exec(`UPDATE orders SET created_at = created_at - interval '1 day' WHERE id = $1`, before)
	o.exec(`UPDATE payments SET created_at = created_at - interval '1 day' WHERE order_id = $1`, before)
	tag := o.product(shopSKU).Header.Get("ETag")
	o.sh(`pg_dump -Fc -f orders.dump "$MIGRATE_DATABASE_URL"`)

	// Since then: the charge is made, the product changed, one more order placed and paid.
	worker := o.work()
	o.alice.PaymentStatus(before, "succeeded")
	lost := o.placePaid("pm_card_visa")
	edited := o.edit(shopSKU, tag, shopTotal/2)
	requireStatus(t, http.StatusOK, edited)
	o.Sandbox.ForgetKeys()

	worker.Stop()
	o.StopAPI(t)
	o.env["RESTORED"] = o.restored("MIGRATE_DATABASE_URL")
	roles, err := filepath.Abs("../../deploy/roles.sql")
	require.NoError(t, err)
	o.follow("restore-from-backup.md", []string{"2.", "3."}, "deploy/roles.sql", roles)
	o.move()
	o.work()
	o.follow("restore-from-backup.md", []string{"4."})
	o.alice.PaymentStatus(before, "succeeded")
	require.Equal(t, 1, o.charged(before), "charged again")
	require.Equal(t, http.StatusNotFound, o.order(lost).Status)
	// An edit of the restored product must not get the version that the lost edit had.
	requireStatus(t, http.StatusOK, o.edit(shopSKU, o.product(shopSKU).Header.Get("ETag"), shopTotal/2))
	requireRefused(t, o.edit(shopSKU, edited.Header.Get("ETag"), 1), http.StatusConflict, "version_conflict")

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
	back := 0
	for _, r := range o.Sandbox.Ledger().Refunds {
		back += int(r.Amount)
	}
	require.Equal(t, shopTotal, back)
	require.NotContains(t, o.follow("restore-from-backup.md", []string{"Done when"}), "pending")
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
	o.DB.Close()
	var err error
	o.DB, err = pgxpool.New(o.t.Context(), o.DatabaseURL)
	require.NoError(o.t, err)
	o.StartAPI(o.t)
	o.alice = o.As(o.t, "alice")
}
