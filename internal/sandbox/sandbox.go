// Package sandbox is a small, stateful stand-in for the Stripe endpoints that this project calls, with a token mint
// and a JWKS beside them. It keeps Stripe's own rules where the project depends on them (idempotency keys, declines,
// limits of refunds), refuses what it does not know, and shows its books: a ledger of the money that moved, every
// attempt that arrived, and faults to switch on. It is for local work, the demo and tests, never for production.
package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config says what a Sandbox needs to know. Issuer and Audience go into the tokens; the rest has defaults.
type Config struct {
	Issuer    string
	Audience  string
	StateFile string           // where charges, refunds, keys and the signing key survive a restart; empty: nowhere
	Now       func() time.Time // default time.Now; tests move it past the life of a key
	Log       *slog.Logger     // default: none
}

// Sandbox is the stand-in. It is safe for concurrent use.
type Sandbox struct {
	cfg    Config
	signer signer

	// mu guards everything below. It is never held while a request waits on a fault.
	mu       sync.Mutex
	state    *state
	inFlight map[string]struct{} // idempotency keys whose first request is still executing
	attempts []Attempt
	rules    []*FaultRule
	held     int
	released chan struct{} // closed when the fault rules are replaced: whoever waits on one goes on
	changed  chan struct{} // closed at every change that a Wait function may be waiting for
}

// New returns a Sandbox, with the state of an earlier one when Config.StateFile holds it.
func New(cfg Config) (*Sandbox, error) {
	if cfg.Issuer == "" || cfg.Audience == "" {
		return nil, errors.New("sandbox: AUTH_ISSUER and AUTH_AUDIENCE are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	st, err := loadState(cfg.StateFile)
	if err != nil {
		return nil, err
	}
	sign, err := newSigner(st)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		cfg: cfg, signer: sign, state: st, inFlight: map[string]struct{}{},
		released: make(chan struct{}), changed: make(chan struct{}),
	}
	// Saved at once, so that a path that cannot be written is known at start, and the signing key outlives us.
	return s, st.save(cfg.StateFile)
}

// ForgetKeys forgets every saved idempotency key, as if the 24 hours of their life had passed.
func (s *Sandbox) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state.Keys)
	s.commit()
}

// WaitCharges blocks until at least n charges stand in the ledger, or ctx ends.
func (s *Sandbox) WaitCharges(ctx context.Context, n int) error {
	return s.wait(ctx, fmt.Sprintf("%d charges", n), func() bool { return len(s.state.charges()) >= n })
}

// WaitHeld blocks until at least n requests are held by a hold or hold_before rule, or ctx ends.
func (s *Sandbox) WaitHeld(ctx context.Context, n int) error {
	return s.wait(ctx, fmt.Sprintf("%d held requests", n), func() bool { return s.held >= n })
}

// wait blocks until done, which is called with the lock held, says so.
func (s *Sandbox) wait(ctx context.Context, what string, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("sandbox: waiting for %s: %w", what, ctx.Err())
		}
	}
}

// notify wakes every Wait function. The lock is held.
func (s *Sandbox) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// commit makes a change of the state durable and known. The lock is held. A file that cannot be written does not undo
// money that moved: it is reported, and the state in memory stays the truth.
func (s *Sandbox) commit() {
	s.state.dropExpired(s.cfg.Now())
	if err := s.state.save(s.cfg.StateFile); err != nil {
		s.cfg.Log.Error("sandbox state not saved", "error", err)
	}
	s.notify()
}

// Attempts returns every Stripe POST that arrived, in order of arrival.
func (s *Sandbox) Attempts() []Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Attempt{}, s.attempts...)
}

// Ledger returns the charges and refunds that moved money or tried to, in order.
func (s *Sandbox) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Ledger{Charges: s.state.charges(), Refunds: s.state.refunds()}
}

// newID returns a fresh identifier of Stripe's form, such as pi_….
func newID(prefix string) string { return prefix + "_" + rand.Text() }

// newest returns the items that keep says yes to, the latest first, as Stripe lists them.
func newest[T any](items []T, keep func(T) bool) []T {
	out := []T{}
	for _, item := range slices.Backward(items) {
		if keep(item) {
			out = append(out, item)
		}
	}
	return out
}
