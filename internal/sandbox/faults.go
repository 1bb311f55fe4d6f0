package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// What a FaultRule can apply to. Any means every Stripe request.
const (
	OpCharge = "charge" // POST /v1/payment_intents
	OpRefund = "refund" // POST /v1/refunds
	OpSearch = "search" // every GET under /v1: search, list and retrieve
	OpAny    = "any"
)

// What a FaultRule can do. Those that need an execution (hold_before, conflict_409, decline) do not apply to GETs.
const (
	FaultDelay          = "delay"            // execute, wait delay_ms, answer
	FaultDrop           = "drop"             // execute, then cut the connection without an answer
	FaultHold           = "hold"             // execute, keep the answer until the rules are replaced or the client goes
	FaultHoldBefore     = "hold_before"      // keep the request executing, its key in use, until then; then execute
	FaultError500       = "error_500"        // execute, answer 500; the key keeps the true result
	FaultError500Before = "error_500_before" // answer 500; nothing executed, nothing saved
	FaultConflict409    = "conflict_409"     // answer 409 idempotency_key_in_use; nothing executed
	FaultRateLimit429   = "rate_limit_429"   // answer 429; nothing executed
	FaultDecline        = "decline"          // execute: the card is declined, the refund fails
)

// FaultRule asks for a fault at the next Times requests of an operation, replays and refusals included; Times 0 means
// until the rules are replaced. The first rule that applies to a request is the only one.
type FaultRule struct {
	Operation string `json:"operation"`
	Kind      string `json:"kind"`
	Times     int    `json:"times"`
	DelayMS   int    `json:"delay_ms,omitempty"`
}

func (r FaultRule) check() error {
	ops := []string{OpCharge, OpRefund, OpSearch, OpAny}
	kinds := []string{
		FaultDelay, FaultDrop, FaultHold, FaultHoldBefore, FaultError500, FaultError500Before, FaultConflict409,
		FaultRateLimit429, FaultDecline,
	}
	switch {
	case !slices.Contains(ops, r.Operation):
		return fmt.Errorf("operation must be one of %v", ops)
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("kind must be one of %v", kinds)
	case r.Operation == OpSearch && writesOnly(r.Kind):
		return fmt.Errorf("%s does not apply to search", r.Kind)
	case r.Times < 0:
		return fmt.Errorf("times must not be negative")
	case (r.Kind == FaultDelay) != (r.DelayMS > 0) || r.DelayMS < 0:
		return fmt.Errorf("delay_ms must be positive for delay, and is for delay only")
	}
	return nil
}

func writesOnly(kind string) bool {
	return kind == FaultHoldBefore || kind == FaultConflict409 || kind == FaultDecline
}

func (r FaultRule) applies(op, method string) bool {
	return (r.Operation == OpAny || r.Operation == op) && (method == http.MethodPost || !writesOnly(r.Kind))
}

// SetFaults replaces the rules, after checking them all. Requests that wait on an earlier rule go on.
func (s *Sandbox) SetFaults(rules []FaultRule) error {
	fresh := make([]*FaultRule, 0, len(rules))
	for i, r := range rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
		fresh = append(fresh, &r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = fresh
	close(s.released)
	s.released = make(chan struct{})
	return nil
}

// ClearFaults removes every rule and lets held requests go on.
func (s *Sandbox) ClearFaults() { _ = s.SetFaults(nil) } // no rules, so none to refuse

// fault is a rule as it meets one request. The zero value is no fault.
type fault struct {
	kind     string
	delay    time.Duration
	released <-chan struct{}
}

// takeFault uses up one time of the first rule that applies.
func (s *Sandbox) takeFault(op, method string) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.rules, func(r *FaultRule) bool { return r.applies(op, method) })
	if at < 0 {
		return fault{}
	}
	rule := s.rules[at]
	f := fault{kind: rule.Kind, delay: time.Duration(rule.DelayMS) * time.Millisecond, released: s.released}
	if rule.Times == 1 {
		s.rules = slices.Delete(s.rules, at, at+1)
	} else if rule.Times > 1 {
		rule.Times--
	}
	return f
}

// instead returns the answer of a fault that lets nothing execute.
func (f fault) instead(key string) *apiError {
	switch f.kind {
	case FaultError500Before:
		return internalError()
	case FaultConflict409:
		return keyInUse(key)
	case FaultRateLimit429:
		return rateLimited()
	}
	return nil
}

// meetFault is what happens to an answer on its way. An answer without a status is not to be sent.
func (s *Sandbox) meetFault(c call, a answer) answer {
	switch c.fault.kind {
	case FaultDrop:
		return answer{}
	case FaultError500:
		return internalError().answer(a.outcome)
	case FaultHold:
		s.hold(c)
	case FaultDelay:
		c.pause()
	}
	return a
}

// hold keeps a request, visibly for WaitHeld, until the rules are replaced or the client goes.
func (s *Sandbox) hold(c call) {
	s.countHeld(+1)
	defer s.countHeld(-1)
	select {
	case <-c.fault.released:
	case <-c.req.Context().Done():
	}
}

func (s *Sandbox) countHeld(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += by
	s.notify()
}

func (c call) pause() {
	timer := time.NewTimer(c.fault.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.fault.released:
	case <-c.req.Context().Done():
	}
}

// faultRules is the body of /faults.
type faultRules struct {
	Rules []FaultRule `json:"rules"`
}

// faultsLeft returns the rules that are still in force.
func (s *Sandbox) faultsLeft() faultRules {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := faultRules{Rules: []FaultRule{}}
	for _, r := range s.rules {
		left.Rules = append(left.Rules, *r)
	}
	return left
}

func (s *Sandbox) putFaults(w http.ResponseWriter, r *http.Request) {
	var asked faultRules
	err := readJSON(w, r, &asked)
	if err == nil {
		err = s.SetFaults(asked.Rules)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, s.faultsLeft())
}
