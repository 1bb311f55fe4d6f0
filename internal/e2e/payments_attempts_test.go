package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/sandbox"
)

// Ensure a charge whose outcome is unknown is asked for again with the same key and the same parameters, until it is
// known, and is made once: whether the provider had executed it before the answer was lost, or not.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestPaymentIsChargedOnceWhateverBecomesOfAnAnswer(t *testing.T) {
	t.Parallel()
	// A short timeout of the provider's, but the one of the job must leave room for the answers of a busy machine.
	impatient := []string{"PROVIDER_TIMEOUT", "500ms"}
	tests := []struct {
		name string
		rule sandbox.FaultRule
		env  []string
	}{
		{"the answer is lost after the charge", fault("charge", sandbox.FaultDrop, 1), nil},
		{"500 after the charge", fault("charge", sandbox.FaultError500, 1), nil},
		{"500 before the charge", fault("charge", sandbox.FaultError500Before, 1), nil},
		{"409, the key is at work", fault("charge", sandbox.FaultConflict409, 1), nil},
		{"429, slow down", fault("charge", sandbox.FaultRateLimit429, 1), nil},
		{"the answer comes too late", sandbox.FaultRule{Operation: "charge", Kind: sandbox.FaultDelay, Times: 1, DelayMS: 60_000}, impatient},
		{"the answer never comes", fault("charge", sandbox.FaultHold, 1), impatient},
		{"the charge itself takes too long", fault("charge", sandbox.FaultHoldBefore, 1), impatient},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, test.env...)
			s.faults(test.rule)
			order := s.place("pm_card_visa")
			s.StartWorker(t)
			s.alice.PaymentStatus(order, "succeeded")
			require.Equal(t, 1, s.charged(order))
			attempts := s.attempts("charge", order)
			require.GreaterOrEqual(t, len(attempts), 2, "the fault met no attempt")
			requireSame(t, chargeKey(order), attempts)
			require.Equal(t, "open", s.order(order).Text("status"))
		})
	}
}

// Ensure a declined charge ends the payment and the order and gives the stock back, all in one transaction, and that
// nobody asks again: also where the provider's no was lost at first.
func TestPaymentDeclinedCancelsTheOrder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method string
		rules        []sandbox.FaultRule
		attempts     int
	}{
		{"the card is declined", "pm_card_chargeDeclined", nil, 1},
		{"the bank asks the customer who is not there", "pm_card_authenticationRequired", nil, 1},
		{"there is no such payment method", "pm_card_unheardOf", nil, 1},
		{"the provider declines", "pm_card_visa", []sandbox.FaultRule{fault("charge", sandbox.FaultDecline, 1)}, 1},
		{"the no is lost", "pm_card_chargeDeclined", []sandbox.FaultRule{fault("charge", sandbox.FaultDrop, 1)}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.faults(test.rules...)
			order := s.place(test.method)
			require.EqualValues(t, shopStock-2, s.OnHand(t, shopSKU))
			s.StartWorker(t)
			s.alice.PaymentStatus(order, "failed")
			o := s.order(order)
			require.Equal(t, "cancelled", o.Text("status"))
			require.Equal(t, "payment_failed", o.Text("cancellation.reason"))
			require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
			require.Zero(t, s.charged(order))
			requireOneTransaction(s, order)
			s.jobDone("charge-order", order)
			requireSame(t, chargeKey(order), s.attempts("charge", order))
			require.Len(t, s.attempts("charge", order), test.attempts)
		})
	}
}

// requireOneTransaction checks that the order, its payment and its stock were last written by the same transaction.
func requireOneTransaction(s shop, order string) {
	s.t.Helper()
	require.Equal(s.t, 1, s.Count(s.t, `orders o JOIN payments p ON p.order_id = o.id JOIN stock k ON k.sku = $2
		WHERE o.id = $1 AND o.xmin::text = p.xmin::text AND p.xmin::text = k.xmin::text`, order, shopSKU))
}

// Ensure an order that nobody can be asked about right now waits for its charge and is visible as pending.
func TestPaymentIsPendingWhileTheProviderIsAway(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault("any", sandbox.FaultError500Before, 0))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	require.Equal(t, "pending", s.payment(order).Text("status"))
	require.Equal(t, "open", s.order(order).Text("status"))
	s.Sandbox.ClearFaults()
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
}
