package scenario

import "slices"

// All returns every scenario.
func All() []Scenario {
	return slices.Concat(keyScenarios(), versionScenarios(), paymentScenarios(), providerScenarios())
}

const (
	app     = "internal/app"
	stores  = "internal/infra/postgres"
	gateway = "internal/infra/stripegateway"
	e2e     = "internal/e2e"
)

func keyScenarios() []Scenario {
	return []Scenario{
		{
			ID: "place-order", Title: "Place an order", Promise: "one order, one charge, after the answer",
			Rules: []string{"delay-irreversible-provider-calls", "route-required-external-effects-durably"},
			Code:  []Link{{app, "PlaceOrder"}, {app, "ChargeOrder"}},
			Tests: []Link{{e2e, "TestPaymentIsAskedForAfterTheCommitOnly"}},
			run:   placeOrder,
		},
		{
			ID: "lost-answer", Title: "Lose the answer and try again",
			Promise: "the retry gets the first answer; nothing happens twice",
			Rules:   []string{"replay-completed-results", "store-idempotency-state-atomically"},
			Code:    []Link{{app, "idempotent"}, {"internal/httpapi", "render"}},
			Tests:   []Link{{e2e, "TestIdempotencyAReplayIsTheOriginalAfterTheOrderWasShipped"}},
			Knobs:   []Knob{{Name: "answers", Label: "answers that are lost", Min: 1, Max: 4, Default: 1}},
			run:     lostAnswer,
		},
		{
			ID: "duplicates-at-once", Title: "Duplicates at once",
			Promise: "one of them works, the others get its answer, byte for byte",
			Rules:   []string{"reload-concurrent-winners", "enforce-key-uniqueness", "define-concurrent-retry-behavior"},
			Code:    []Link{{stores, "InKeyedTx"}, {stores, "completeKey"}},
			Tests:   []Link{{e2e, "TestIdempotencyTwentyDuplicatesMakeOneOrder"}},
			Knobs:   []Knob{{Name: "duplicates", Label: "duplicates", Min: 2, Max: 50, Default: 20}},
			run:     duplicatesAtOnce,
		},
		{
			ID: "key-reuse", Title: "Use a key again for something else", Promise: "refused, and nothing happens",
			Rules: []string{"reject-conflicting-key-reuse", "canonicalize-request-fingerprints"},
			Code:  []Link{{app, "fingerprint"}},
			Tests: []Link{{e2e, "TestIdempotencyAReusedKeyIsRefusedAndARewrittenRequestIsNot"}},
			run:   reuseKey,
		},
		{
			ID: "another-actors-key", Title: "Use another actor's key", Promise: "keys belong to their actor: it is a new order",
			Rules: []string{"scope-client-keys"},
			Code:  []Link{{app, "KeyScope"}},
			Tests: []Link{{e2e, "TestIdempotencyTheSameKeyOfAnotherScopeIsAnotherKey"}},
			run:   borrowKey,
		},
		{
			ID: "expired-key", Title: "Use a key after its 72 hours",
			Promise: "it is a new key: of several retries at once, one makes a new order",
			Rules:   []string{"set-key-retention", "retain-safe-retry-keys", "enforce-key-uniqueness"},
			Code:    []Link{{stores, "completeKey"}, {"docs/settings/idempotency-key-retention.yaml", "span"}},
			Tests:   []Link{{e2e, "TestIdempotencyDuplicatesAtAnExpiredRecordMakeOneOrder"}},
			Knobs:   []Knob{{Name: "retries", Label: "retries at once, after the 72 hours", Min: 1, Max: 20, Default: 5}},
			run:     expiredKey,
		},
		{
			ID: "declined-card", Title: "Pay with a card that is declined",
			Promise: "the order is cancelled, its stock is back, nothing is charged",
			Rules:   []string{"route-required-external-effects-durably"},
			Code:    []Link{{app, "settle"}},
			Tests:   []Link{{e2e, "TestPaymentDeclinedCancelsTheOrder"}},
			run:     declinedCard,
		},
	}
}

func versionScenarios() []Scenario {
	return []Scenario{
		{
			ID: "stale-editor", Title: "Edit what another tab has edited",
			Promise: "no silent overwrite: 428, 409, then read again and merge",
			Rules: []string{
				"apply-http-version-preconditions", "return-precondition-outcomes", "map-failed-expected-versions",
				"reject-silent-overwrites",
			},
			Code:  []Link{{app, "check"}, {"client", "Update"}},
			Tests: []Link{{e2e, "TestConflictVersionedOperationsHoldTheCallerToItsVersion"}},
			run:   staleEditor,
		},
		{
			ID: "address-against-shipment", Title: "Change the address while it is shipped",
			Promise: "one wins; no parcel leaves for an address that the order no longer shows",
			Rules:   []string{"compare-expected-aggregate-versions", "document-write-conflict-behavior"},
			Code:    []Link{{app, "ShipOrder"}, {"docs/usecases/change-shipping-address.yaml", "conflicts"}},
			Tests:   []Link{{e2e, "TestConflictAddressChangeAgainstShipment"}},
			Knobs:   []Knob{firstKnob("the address")},
			run:     addressAgainstShipment,
		},
		{
			ID: "ship-against-cancel", Title: "Cancel while it is shipped",
			Promise: "one wins; no cancelled order is shipped, and its money is back once",
			Rules:   []string{"compare-expected-aggregate-versions", "document-write-conflict-behavior"},
			Code:    []Link{{app, "cancelOrder"}, {"docs/usecases/ship-order.yaml", "conflicts"}},
			Tests:   []Link{{e2e, "TestConflictShipmentAgainstCancellation"}},
			Knobs:   []Knob{firstKnob("the cancellation")},
			run:     shipAgainstCancel,
		},
		{
			ID: "many-buyers", Title: "More buyers than lamps",
			Promise: "as many orders as lamps, a refusal for each of the others, and no buyer sees a version conflict",
			Rules:   []string{"limit-version-checks"},
			Code:    []Link{{"internal/domain", "Stock"}},
			Tests:   []Link{{e2e, "TestConflictFortyBuyersForThirtyLamps"}},
			Knobs: []Knob{
				{Name: "buyers", Label: "buyers at once", Min: 2, Max: 50, Default: 40},
				{Name: "lamps", Label: "lamps on the shelf", Min: 1, Max: 50, Default: 30},
			},
			run: manyBuyers,
		},
	}
}

func paymentScenarios() []Scenario {
	return []Scenario{
		{
			ID: "worker-killed-mid-charge", Title: "Kill the worker in mid-charge",
			Promise: "nothing is lost and nothing is charged twice",
			Rules:   []string{"route-required-external-effects-durably", "delay-irreversible-provider-calls"},
			Code:    []Link{{app, "ChargeOrder"}, {"docs/crash-points.md", "crash"}},
			Tests:   []Link{{e2e, "TestPaymentSurvivesAWorkerKilledAtAnyPoint"}},
			Knobs:   []Knob{crashKnob()},
			run:     killWorker, end: resumeCharge,
		},
		{
			ID: "cancel-against-charge", Title: "Cancel against a charge in flight",
			Promise: "the provider decides: nothing is charged, or it is refunded, once",
			Rules:   []string{"route-required-external-effects-durably"},
			Code:    []Link{{app, "SettlePayment"}, {app, "settle"}},
			Tests:   []Link{{e2e, "TestPaymentCancelledWhileItIsConfirmed"}},
			Knobs:   []Knob{choose("winner", "who wins at the provider", chargeWins, "the charge", "the cancellation")},
			run:     cancelAgainstCharge,
		},
		{
			ID: "refunds-at-once", Title: "More refunds than fit, at once",
			Promise: "three are accepted; no customer gets back more than was paid",
			Rules:   []string{"limit-version-checks"},
			Code:    []Link{{app, "RefundOrder"}},
			Tests:   []Link{{e2e, "TestRefundsAtOnceStayWithinTheCharge"}},
			Knobs:   []Knob{{Name: "refunds", Label: "refunds of a third each", Min: 4, Max: 8, Default: 8}},
			run:     refundsAtOnce,
		},
		{
			ID: "refund-fails-later", Title: "A refund fails a day later",
			Promise: "the balance is back, an operator hears of it, and it can be refunded again",
			Rules:   []string{"route-required-external-effects-durably"},
			Code:    []Link{{app, "settleRefunds"}},
			Tests:   []Link{{e2e, "TestEventsOfARefundThatFailsLater"}},
			run:     lateFailure,
		},
	}
}

func providerScenarios() []Scenario {
	return []Scenario{
		{
			ID: "saved-error", Title: "Let the provider answer 500 and save it",
			Promise: "the intent's state tells what happened; one charge",
			Rules:   []string{"route-required-external-effects-durably"},
			Code:    []Link{{app, "ChargeOrder"}, {"docs/protocols.md", "saved"}},
			Tests:   []Link{{e2e, "TestPaymentKeysFollowTheAnswers"}},
			run:     savedError,
		},
		{
			ID: "event-delivered-thrice", Title: "Deliver an event three times",
			Promise: "it is received once, and changes nothing that is known",
			Rules:   []string{"store-idempotency-state-atomically"},
			Code:    []Link{{app, "ReceiveProviderEvent"}},
			Tests:   []Link{{e2e, "TestEventsDeliveredAtOnceLeaveOneJob"}},
			Knobs:   []Knob{{Name: "deliveries", Label: "deliveries at once", Min: 2, Max: 10, Default: 3}},
			run:     repeatedEvent,
		},
		{
			ID: "provider-down", Title: "Order while the provider is down",
			Promise: "orders are accepted, and each is charged once when it works again",
			Rules:   []string{"delay-irreversible-provider-calls", "route-required-external-effects-durably"},
			Code:    []Link{{gateway, "Guard"}, {"internal/infra/outbox", "InsertSQL"}},
			Tests:   []Link{{e2e, "TestOutageProviderGone"}},
			Knobs:   []Knob{outages(), {Name: "orders", Label: "orders meanwhile", Min: 1, Max: 5, Default: 2}},
			run:     providerDown,
		},
	}
}
