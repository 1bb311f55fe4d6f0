package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

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
	kind       string
	delay      time.Duration
	retryAfter int
	released   <-chan struct{}
}

// takeFault uses up one time of the first rule that applies to a call.
func (s *Sandbox) takeFault(c call) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(func(r *FaultRule) bool { return r.applies(c.ops) })
}

// takeEventFault uses up one time of the first rule that applies to the delivery of an event. The lock is held.
func (s *Sandbox) takeEventFault(kind string) fault {
	return s.take(func(r *FaultRule) bool {
		return r.Operation == OpEvent && (r.EventType == "" || r.EventType == kind)
	})
}

func (s *Sandbox) take(applies func(*FaultRule) bool) fault {
	at := slices.IndexFunc(s.rules, applies)
	if at < 0 {
		return fault{}
	}
	rule := s.rules[at]
	f := fault{
		kind: rule.Kind, delay: time.Duration(rule.DelayMS) * time.Millisecond, retryAfter: rule.RetryAfter,
		released: s.released,
	}
	if rule.Times == 1 {
		s.rules = slices.Delete(s.rules, at, at+1)
	} else if rule.Times > 1 {
		rule.Times--
	}
	return f
}

// instead returns the answer of a fault that lets nothing execute.
func (f fault) instead(c call) *apiError {
	switch f.kind {
	case FaultError500Before:
		return internalError()
	case FaultError500, FaultError500Undone:
		if c.req.Method != http.MethodPost {
			return internalError() // a read has no effect that could happen or not
		}
	case FaultConflict409:
		return keyInUse(c.key)
	case FaultRateLimit429:
		return rateLimited(f.retryAfter)
	}
	return nil
}

// meetFault is what happens to an answer on its way. An answer without a status is not to be sent.
func (s *Sandbox) meetFault(c call, a answer) answer {
	switch c.fault.kind {
	case FaultDrop:
		return answer{}
	case FaultHold:
		s.hold(c)
	case FaultDelay:
		c.await(time.After(c.fault.delay))
	}
	return a
}

// hold keeps a request, visibly for WaitHeld, until the rules are replaced or the client goes.
func (s *Sandbox) hold(c call) {
	s.countHeld(+1)
	defer s.countHeld(-1)
	c.await(nil)
}

// await waits for a moment, unless the rules are replaced or the client goes before.
func (c call) await(moment <-chan time.Time) {
	select {
	case <-moment:
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

func (s *Sandbox) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	s.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}
