package sandbox

import (
	"net/url"
	"time"
)

const (
	maxKeyLength = 255
	// keyLife is how long Stripe remembers a key. Past it, the same key executes anew.
	keyLife = 24 * time.Hour
)

// savedKey is the answer that was first given under an idempotency key, and what it was given for.
type savedKey struct {
	Path      string    `json:"path"`
	Params    string    `json:"params_sha256"`
	Status    int       `json:"status"`
	Body      []byte    `json:"body"` // base64 on disk: a replay is the same bytes, not an equal document
	RequestID string    `json:"request_id"`
	SavedAt   time.Time `json:"saved_at"`
}

func (k savedKey) expired(now time.Time) bool { return now.Sub(k.SavedAt) >= keyLife }

// execution does what a checked write asks for, with the lock held.
type execution func(st *state, now time.Time, decline bool) answer

// write turns a parser into an endpoint that keeps Stripe's key rules. What the parser refuses never began to execute,
// so it leaves the key free; all that an execution answers is saved, refusals too.
func (s *Sandbox) write(parse func(url.Values) (execution, *apiError)) func(call) answer {
	return func(c call) answer {
		if a, claimed := s.claim(c); !claimed {
			return a
		}
		exec, refusal := parse(c.form)
		if refusal != nil {
			s.unclaim(c)
			return refusal.answer(outcomeRejected)
		}
		if c.fault.kind == FaultHoldBefore {
			s.hold(c)
		}
		return s.execute(c, exec)
	}
}

// claim gives the key to this call, or the answer that the call gets instead.
func (s *Sandbox) claim(c call) (answer, bool) {
	if c.key == "" {
		return answer{}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.inFlight[c.key]; busy {
		return keyInUse(c.key).answer(outcomeInUse), false
	}
	saved, ok := s.state.Keys[c.key]
	if !ok || saved.expired(s.cfg.Now()) {
		s.inFlight[c.key] = struct{}{}
		return answer{}, true
	}
	if saved.Path != c.req.URL.Path || saved.Params != c.digest {
		return keyMismatch(c.key).answer(outcomeMismatch), false
	}
	return answer{status: saved.Status, body: saved.Body, outcome: outcomeReplayed, original: saved.RequestID}, false
}

func (s *Sandbox) unclaim(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, c.key)
}

// execute changes the state and saves the answer in one step: no request ever sees one without the other.
func (s *Sandbox) execute(c call, exec execution) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	a := exec(s.state, now, c.fault.kind == FaultDecline)
	a.outcome, a.original = outcomeExecuted, c.id
	if c.key != "" {
		delete(s.inFlight, c.key)
		s.state.Keys[c.key] = savedKey{
			Path: c.req.URL.Path, Params: c.digest, Status: a.status, Body: a.body, RequestID: c.id, SavedAt: now,
		}
	}
	s.commit()
	return a
}
