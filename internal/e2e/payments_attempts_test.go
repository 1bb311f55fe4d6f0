package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure an order is charged once whatever becomes of an answer of the provider, at whichever step: the answer is lost,
// late or never comes, the provider saved a 500 with or without the effect, or refused to begin.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestPaymentIsChargedOnceWhateverBecomesOfAnAnswer(t *testing.T) {
	t.Parallel()
	// A short timeout of the provider's, but the one of the job must leave room for the answers of a busy machine.
	short := []string{"PROVIDER_TIMEOUT", "2s"}
	for _, operation := range []string{sandbox.OpCreateIntent, sandbox.OpConfirmIntent} {
		for kind, env := range map[string][]string{
			sandbox.FaultDrop: nil, sandbox.FaultError500: nil, sandbox.FaultError500Undone: nil,
			sandbox.FaultError500Before: nil, sandbox.FaultConflict409: nil, sandbox.FaultRateLimit429: nil,
			sandbox.FaultHold: short, sandbox.FaultHoldBefore: short,
		} {
			t.Run(operation+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := openShopWithoutEvents(t, env...)
				s.faults(fault(operation, kind, 1))
				order := s.place("pm_card_visa")
				s.StartWorker(t)
				s.alice.PaymentStatus(order, "succeeded")
				require.Equal(t, 1, s.charged(order))
				require.Equal(t, "open", s.order(order).Text("status"))
				s.jobDone("charge-order", order)
				s.requireOneIntentCharged(order)
			})
		}
	}
}

// requireOneIntentCharged checks that the payment's intent is the one that was charged.
func (s shop) requireOneIntentCharged(order string) {
	s.t.Helper()
	intent := queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order)
	for _, c := range s.Sandbox.Ledger().Charges {
		if c.OrderID == order && c.Status == "succeeded" {
			require.Equal(s.t, intent, c.ID)
		}
	}
}

// Ensure a key that may hold a saved 500 is not used again, and that any other is: the next call after an answered 5xx has
// the next generation, the one after a lost answer has the same.
func TestPaymentKeysFollowTheAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		operation, kind string
		intents         []string // suffixes of the keys
		confirms        []string
	}{
		"a saved 500 to the creation":          {sandbox.OpCreateIntent, sandbox.FaultError500, []string{"", ":2"}, []string{""}},
		"a 500 before the creation":            {sandbox.OpCreateIntent, sandbox.FaultError500Before, []string{"", ":2"}, []string{""}},
		"a lost answer to the creation":        {sandbox.OpCreateIntent, sandbox.FaultDrop, []string{""}, []string{""}},
		"a saved 500 without a confirmation":   {sandbox.OpConfirmIntent, sandbox.FaultError500Undone, []string{""}, []string{"", ":2"}},
		"a saved 500 after the confirmation":   {sandbox.OpConfirmIntent, sandbox.FaultError500, []string{""}, []string{""}},
		"a lost answer to the confirmation":    {sandbox.OpConfirmIntent, sandbox.FaultDrop, []string{""}, []string{""}},
		"429 to the confirmation":              {sandbox.OpConfirmIntent, sandbox.FaultRateLimit429, []string{""}, []string{""}},
		"the key is in use at the same moment": {sandbox.OpConfirmIntent, sandbox.FaultConflict409, []string{""}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.faults(fault(test.operation, test.kind, 1))
			order := s.place("pm_card_visa")
			s.StartWorker(t)
			s.alice.PaymentStatus(order, "succeeded")
			var intents, confirms []string
			for _, suffix := range test.intents {
				intents = append(intents, "order:default:"+order+":intent"+suffix)
			}
			for _, suffix := range test.confirms {
				confirms = append(confirms, confirmKey(order)+suffix)
			}
			require.Equal(t, intents, keys(s.attempts("intent", order)))
			require.Equal(t, confirms, keys(s.attempts("confirm", order)))
			require.Equal(t, 1, s.charged(order))
		})
	}
}

// Ensure a declined charge ends the payment and the order and gives the stock back, all in one transaction, and that it is
// final: also where the provider's no was lost at first, or answered as a saved 500.
func TestPaymentDeclinedCancelsTheOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		rules  []sandbox.FaultRule
	}{
		"the card is declined":                          {"pm_card_chargeDeclined", nil},
		"the bank asks for an authentication":           {"pm_card_authenticationRequired", nil},
		"the provider declines":                         {"pm_card_visa", []sandbox.FaultRule{fault("charge", sandbox.FaultDecline, 1)}},
		"the answer is lost":                            {"pm_card_chargeDeclined", []sandbox.FaultRule{fault("charge", sandbox.FaultDrop, 1)}},
		"the answer is a saved 500 after the decline":   {"pm_card_chargeDeclined", []sandbox.FaultRule{fault("charge", sandbox.FaultError500, 1)}},
		"the answer is a saved 500 without the decline": {"pm_card_chargeDeclined", []sandbox.FaultRule{fault("charge", sandbox.FaultError500Undone, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
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
		})
	}
}

// requireOneTransaction checks that the order, its payment and its stock were last written by the same transaction.
func requireOneTransaction(s shop, order string) {
	s.t.Helper()
	require.Equal(s.t, 1, s.Count(s.t, `orders o JOIN payments p ON p.order_id = o.id JOIN stock k ON k.sku = $2
		WHERE o.id = $1 AND o.xmin::text = p.xmin::text AND p.xmin::text = k.xmin::text`, order, shopSKU))
}

// Ensure a refusal that is no decline is neither taken for one nor retried for ever: the payment stays pending and is
// shown as refused, and after PAYMENT_REFUSAL_LIMIT the intent is cancelled at the provider and the order ends.
func TestPaymentRefusedEndsAfterItsLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ method, code string }{
		"there is no such payment method":          {"pm_card_unheardOf", "invalid_request_error/resource_missing"},
		"the payment method was used up elsewhere": {"pm_card_used_before", "invalid_request_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			order := s.place(test.method)
			s.StartWorker(t)
			s.jobFailed("charge-order", order)
			require.Equal(t, "pending", s.payment(order).Text("status"))
			require.Equal(t, "open", s.order(order).Text("status"))
			require.Contains(t, queryValue[string](s, `SELECT refusal FROM payments WHERE order_id = $1`, order), test.code)

			s.exec(`UPDATE payments SET refused_at = refused_at - interval '25 hours' WHERE order_id = $1`, order)
			s.runNow("charge-order", order)
			s.alice.PaymentStatus(order, "failed")
			require.Equal(t, "cancelled", s.order(order).Text("status"))
			require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
			require.Zero(t, s.charged(order))
			s.jobDone("charge-order", order)
		})
	}
}

// Ensure an order whose charge is refused and that its customer cancels is never charged.
func TestPaymentRefusedThenCancelledIsNeverCharged(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"pm_card_unheardOf", "pm_card_used_before"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			order := s.place(method)
			s.StartWorker(t)
			s.jobFailed("charge-order", order)
			requireStatus(t, 200, s.cancel(order))
			s.alice.PaymentStatus(order, "canceled")
			s.requireCancelled(order)
			require.Zero(t, s.charged(order))
		})
	}
}

// Ensure a charge that the provider works on for long is looked at again, and never confirmed again.
func TestPaymentProcessingIsFollowed(t *testing.T) {
	t.Parallel()
	for name, succeeded := range map[string]bool{"succeeded": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShopWithoutEvents(t)
			s.faults(fault("charge", sandbox.FaultProcessing, 1))
			order := s.place("pm_card_visa")
			s.StartWorker(t)
			s.jobFailed("charge-order", order)
			require.Equal(t, "pending", s.payment(order).Text("status"))
			intent := queryValue[string](s, `SELECT charge_id FROM payments WHERE order_id = $1`, order)
			require.NoError(t, s.Sandbox.FinishProcessing(intent, succeeded))
			s.runNow("charge-order", order)
			s.alice.PaymentStatus(order, name)
			require.Len(t, s.attempts("confirm", order), 1)
		})
	}
}

// Ensure an order waits for its charge and is visible as pending while the provider is away.
func TestPaymentIsPendingWhileTheProviderIsAway(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.faults(fault("any", sandbox.FaultError500Before, 0))
	order := s.place("pm_card_visa")
	s.StartWorker(t)
	s.jobFailed("charge-order", order)
	require.Equal(t, "pending", s.payment(order).Text("status"))
	require.Equal(t, "open", s.order(order).Text("status"))
	s.Sandbox.ClearFaults()
	s.runNow("charge-order", order)
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
}
