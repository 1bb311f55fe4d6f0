package e2e

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// stormOrders is how many orders meet the storm; STORM_ORDERS says otherwise.
const stormOrders = 60

// calm bounds the time in which all orders are paid once the storm has ended.
const calm = 5 * time.Minute

// Ensure orders whose calls meet saved 500s and lost answers at every step are all paid, once, within minutes after the
// provider has recovered, and that an order that is placed then is paid at once: no key holds an answer that stands in
// its way.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestPaymentsOfAStorm(t *testing.T) {
	t.Parallel()
	orders := stormOrders
	if n, err := strconv.Atoi(os.Getenv("STORM_ORDERS")); err == nil {
		orders = n
	}
	s := openShopWithoutEvents(t, "WORKER_CONCURRENCY", "20", "DB_MAX_CONNS", "24")
	s.Product(t, "MUG-001", 100, int64(orders)+1)
	s.faults(storm(orders)...)
	for range orders {
		s.placeMug()
	}
	s.StartWorker(t)
	testkit.Eventually(t, "a call about every order", func() bool { return len(s.ordersAskedFor()) == orders })
	s.Sandbox.ClearFaults()
	ended := time.Now()
	fresh := s.placeMug()
	s.alice.PaymentStatus(fresh, "succeeded")
	t.Logf("the order that was placed afterwards was paid after %s", time.Since(ended).Round(time.Millisecond))
	require.Eventually(t, func() bool { return s.Count(t, `payments WHERE status <> 'succeeded'`) == 0 }, calm, 50*time.Millisecond)
	t.Logf("%d orders were paid within %s of the end of the storm", orders, time.Since(ended).Round(time.Millisecond))
	require.Len(t, s.Sandbox.Ledger().Charges, orders+1)
	testkit.CheckRest(t, s.Service)
}

// ordersAskedFor is the orders for which an intent was to be created.
func (s shop) ordersAskedFor() map[string]bool {
	orders := map[string]bool{}
	for _, a := range s.Sandbox.Attempts() {
		if a.Path == "/v1/payment_intents" {
			orders[a.Params["metadata[order_id]"]] = true
		}
	}
	return orders
}

// storm is rules for the calls of many orders, at both steps: three in four fail, some saved as 500 with their effect, some
// without, some lost. The others keep the worker from leaving the provider alone before every order has met the storm.
func storm(orders int) (rules []sandbox.FaultRule) {
	for range 1 + orders/4 {
		for _, operation := range []string{sandbox.OpCreateIntent, sandbox.OpConfirmIntent} {
			for _, kind := range []string{sandbox.FaultError500, sandbox.FaultError500Undone, sandbox.FaultDrop} {
				rules = append(rules, fault(operation, kind, 3),
					sandbox.FaultRule{Operation: operation, Kind: sandbox.FaultDelay, DelayMS: 1, Times: 1})
			}
		}
	}
	return rules
}
