package sandbox

import "time"

const (
	maxKeyLength = 255
	// keyLife is how long Stripe remembers a key. Past it, the same key executes anew.
	keyLife = 24 * time.Hour
)

// savedKey is the answer that was first given under an idempotency key, and what it was given for.
type savedKey struct {
	Key       string    `json:"key"`
	Path      string    `json:"path"`
	Params    string    `json:"params_sha256"`
	Status    int       `json:"status"`
	Body      []byte    `json:"body"` // base64 on disk: a replay is the same bytes, not an equal document
	RequestID string    `json:"request_id"`
	SavedAt   time.Time `json:"saved_at"`
}

func (k savedKey) expired(now time.Time) bool { return now.Sub(k.SavedAt) >= keyLife }

// execution does what a checked write asks for, with the lock held.
type execution func(*change) answer

// write turns a parser into an endpoint that keeps Stripe's key rules. What the parser refuses never began to execute,
// so it leaves the key free; all that an execution answers is saved, refusals and server errors too.
func (s *Sandbox) write(parse func(call) (execution, *apiError)) func(call) answer {
	return func(c call) answer {
		if a, claimed := s.claim(c); !claimed {
			return a
		}
		exec, refusal := parse(c)
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
	saved, ok := s.state.keys[c.key]
	if !ok || saved.expired(s.now()) {
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
	ch := s.begin()
	ch.requestID, ch.key = c.id, c.key
	ch.decline, ch.process = c.fault.kind == FaultDecline, c.fault.kind == FaultProcessing
	a := run(c, ch, exec)
	a.original = c.id
	if c.key != "" {
		delete(s.inFlight, c.key)
		ch.entry.Key = &savedKey{
			Key: c.key, Path: c.req.URL.Path, Params: c.digest, Status: a.status, Body: a.body, RequestID: c.id, SavedAt: ch.now,
		}
		ch.st.apply(entry{Key: ch.entry.Key})
	}
	s.commit(ch)
	return a
}

// run executes, unless a fault makes the execution fail before or after its effect.
func run(c call, ch *change, exec execution) answer {
	if c.fault.kind == FaultError500Undone {
		return internalError().answer(FaultError500Undone)
	}
	a := exec(ch)
	if c.fault.kind == FaultError500 {
		a = internalError().answer("")
	}
	a.outcome = outcomeExecuted
	return a
}
