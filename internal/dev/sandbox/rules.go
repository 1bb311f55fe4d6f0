package sandbox

import (
	"errors"
	"fmt"
	"slices"
)

// What a FaultRule can apply to.
const (
	OpCreateIntent   = "create-intent"   // POST /v1/payment_intents
	OpConfirmIntent  = "confirm-intent"  // POST /v1/payment_intents/{id}/confirm
	OpCancelIntent   = "cancel-intent"   // POST /v1/payment_intents/{id}/cancel
	OpRetrieveIntent = "retrieve-intent" // GET /v1/payment_intents/{id}
	OpCharge         = "charge"          // the call that charges: a confirmation, or a creation with confirm=true
	OpRefund         = "refund"          // POST /v1/refunds
	OpSearch         = "search"          // GET /v1/payment_intents/search
	OpList           = "list"            // every other GET under /v1
	OpAny            = "any"             // every request under /v1
	OpEvent          = "event"           // the delivery of an event
)

// What a FaultRule can do to a request.
const (
	FaultDelay          = "delay"            // execute, wait delay_ms, answer
	FaultDrop           = "drop"             // execute, then cut the connection without an answer
	FaultHold           = "hold"             // execute, keep the answer until the rules are replaced or the client goes
	FaultHoldBefore     = "hold_before"      // keep the request executing, its key in use, until then; then execute
	FaultError500       = "error_500"        // execute, answer 500 and save that under the key
	FaultError500Undone = "error_500_undone" // begin to execute, do nothing, answer 500 and save that under the key
	FaultError500Before = "error_500_before" // answer 500; nothing executed, nothing saved
	FaultConflict409    = "conflict_409"     // answer 409 idempotency_key_in_use; nothing executed, nothing saved
	FaultRateLimit429   = "rate_limit_429"   // answer 429, with Retry-After if retry_after is set; nothing executed
	FaultDecline        = "decline"          // execute: the card is declined, the refund fails
	FaultProcessing     = "processing"       // execute: the charge stays in processing until FinishProcessing
)

// What a FaultRule can do to the delivery of an event.
const (
	FaultLate       = "late"        // delivered after delay_ms
	FaultTwice      = "twice"       // delivered twice
	FaultReorder    = "reorder"     // delivered after the next event, or after a second without one
	FaultLost       = "lost"        // never delivered
	FaultForged     = "forged"      // delivered, and beside it other content with a signature that is not valid
	FaultReplayLate = "replay_late" // delivered, and again with its valid signature of an hour ago
)

// FaultRule asks for a fault at the next Times requests of an operation that it can apply to, replays and refusals
// included; Times 0 means until the rules are replaced. The first rule that applies to a request is the only one.
type FaultRule struct {
	Operation  string `json:"operation"`
	Kind       string `json:"kind"`
	Times      int    `json:"times"`
	DelayMS    int    `json:"delay_ms,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds, for rate_limit_429
	EventType  string `json:"event_type,omitempty"`  // for operation event: of this type only
}

func (r FaultRule) check() error {
	ops := []string{
		OpCreateIntent, OpConfirmIntent, OpCancelIntent, OpRetrieveIntent, OpCharge, OpRefund, OpSearch, OpList, OpAny, OpEvent,
	}
	kinds := []string{
		FaultDelay, FaultDrop, FaultHold, FaultHoldBefore, FaultError500, FaultError500Undone, FaultError500Before,
		FaultConflict409, FaultRateLimit429, FaultDecline, FaultProcessing,
	}
	if r.Operation == OpEvent {
		kinds = []string{FaultLate, FaultTwice, FaultReorder, FaultLost, FaultForged, FaultReplayLate}
	}
	switch {
	case !slices.Contains(ops, r.Operation):
		return fmt.Errorf("operation must be one of %v", ops)
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("kind for %s must be one of %v", r.Operation, kinds)
	case r.Operation != OpAny && r.Operation != OpEvent && !canMeet(r.Kind, r.Operation):
		return fmt.Errorf("%s does not apply to %s", r.Kind, r.Operation)
	case r.Times < 0:
		return errors.New("times must not be negative")
	}
	return r.checkOptions()
}

func (r FaultRule) checkOptions() error {
	delays := r.Kind == FaultDelay || r.Kind == FaultLate
	switch {
	case delays != (r.DelayMS > 0) || r.DelayMS < 0:
		return errors.New("delay_ms must be positive for delay and late, and is for those only")
	case r.RetryAfter < 0 || r.RetryAfter > 0 && r.Kind != FaultRateLimit429:
		return errors.New("retry_after must not be negative, and is for rate_limit_429 only")
	case r.EventType != "" && r.Operation != OpEvent:
		return errors.New("event_type is for operation event only")
	}
	return nil
}

// canMeet tells whether a kind of fault has something to do at any of a call's operations.
func canMeet(kind string, ops ...string) bool {
	var at []string
	switch kind {
	case FaultProcessing:
		at = []string{OpCharge, OpConfirmIntent}
	case FaultDecline:
		at = []string{OpCharge, OpConfirmIntent, OpRefund}
	case FaultHoldBefore, FaultConflict409:
		at = []string{OpCharge, OpCreateIntent, OpConfirmIntent, OpCancelIntent, OpRefund}
	default:
		return true
	}
	return slices.ContainsFunc(ops, func(op string) bool { return slices.Contains(at, op) })
}

func (r FaultRule) applies(ops []string) bool {
	return slices.Contains(ops, r.Operation) && canMeet(r.Kind, ops...)
}
