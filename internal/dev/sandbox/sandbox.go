// Package sandbox is a small, stateful stand-in for the Stripe endpoints that this project calls, with a token mint
// and a JWKS beside them. It keeps Stripe's own rules where the project depends on them (idempotency keys, the states of
// a PaymentIntent, declines, limits of amounts and refunds, signed events) and is never kinder than Stripe: it refuses
// what it does not know, and its search lags. It shows its books: a ledger of the money that moved, every attempt that
// arrived, every event that was delivered; and it has faults to switch on. docs/provider.md lists each behaviour with
// the page of Stripe's documentation that states it. It is for local work, the demo and tests, never for production.
package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/orders/internal/dev/issuer"
)

// DefaultSearchLag is how long a change stays unknown to the search: Stripe promises "under 1 minute" in normal times.
const DefaultSearchLag = time.Minute

// DefaultEventSecret signs the events when Config names no other secret.
const DefaultEventSecret = "whsec_sandbox" // it protects nothing

// Config says what a Sandbox needs to know. Issuer and Audience go into the tokens; the rest has defaults.
type Config struct {
	Issuer       string
	Audience     string
	StateFile    string           // where objects, keys and the signing key survive a restart; empty: nowhere
	Now          func() time.Time // default time.Now; tests move it past the life of a key
	Log          *slog.Logger     // default: none
	SearchLag    time.Duration    // 0: DefaultSearchLag; negative: none, which is kinder than Stripe
	EventsURL    string           // where events are delivered; empty: nowhere, until SetEventsURL
	KeepAlive    bool             // offer connections for reuse, as Stripe does; then clients may hide a dropped answer
	EventSecrets []string         // each signs every event, as while a secret is rotated; default DefaultEventSecret
}

// Sandbox is the stand-in. It is safe for concurrent use.
type Sandbox struct {
	*issuer.Issuer

	cfg     Config
	courier *courier

	// mu guards everything below. It is never held while a request waits on a fault.
	mu       sync.Mutex
	state    *state
	journal  *journal
	inFlight map[string]struct{} // idempotency keys whose first request is still executing
	attempts []Attempt
	rules    []*FaultRule
	held     int
	released chan struct{} // closed when the fault rules are replaced: a request that waits on one goes on
	changed  chan struct{} // closed at every change that a Wait function may be waiting for
}

// New returns a Sandbox, with the state of an earlier one when Config.StateFile holds it. Close it when it is no longer
// needed.
func New(cfg Config) (*Sandbox, error) {
	if cfg.Issuer == "" || cfg.Audience == "" {
		return nil, errors.New("sandbox: AUTH_ISSUER and AUTH_AUDIENCE are required")
	}
	cfg = withDefaults(cfg)
	j, st, err := openJournal(cfg.StateFile)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		cfg: cfg, courier: newCourier(cfg), state: st, journal: j, inFlight: map[string]struct{}{},
		released: make(chan struct{}), changed: make(chan struct{}),
	}
	var made bool
	if s.Issuer, made, err = openIssuer(cfg, st); err != nil {
		return nil, errors.Join(err, j.close())
	}
	if made {
		err = j.add(entry{SigningKey: st.signingKey})
	}
	return s, err
}

func withDefaults(cfg Config) Config {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log, cfg.SearchLag = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), cmp.Or(cfg.SearchLag, DefaultSearchLag)
	if len(cfg.EventSecrets) == 0 {
		cfg.EventSecrets = []string{DefaultEventSecret}
	}
	return cfg
}

// Close ends the delivery of events and closes the state file. What the Sandbox shows can still be read.
func (s *Sandbox) Close() error {
	s.courier.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.close()
}

// now is the time of the sandbox's clock, which never goes back. The lock is held.
func (s *Sandbox) now() time.Time {
	if now := s.cfg.Now().Add(s.state.skew); now.After(s.state.last) {
		s.state.last = now
	}
	return s.state.last
}

// AdvanceClock moves the sandbox's clock forward for good: keys expire, the search catches up, and what is made from
// then on is that much younger. Tokens and the signatures of events keep to the real time, as their readers do. A d of
// zero or less does nothing.
func (s *Sandbox) AdvanceClock(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save(entry{Advance: d})
}

// ForgetKeys forgets every saved idempotency key, as if the 24 hours of their life had passed.
func (s *Sandbox) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save(entry{ForgetKeys: true})
}

// save applies a change that is no execution, and writes it. The lock is held.
func (s *Sandbox) save(e entry) {
	e.At = s.now()
	s.state.apply(e)
	s.record(e)
}

// record makes a change of the state durable and known. The lock is held. A file that cannot be written does not undo
// money that moved: it is reported, and the state in memory stays the truth.
func (s *Sandbox) record(e entry) {
	if err := s.journal.add(e); err != nil {
		s.cfg.Log.Error("sandbox state not saved", "error", err)
	}
	s.notify()
}

// begin starts a change that no request asked for. The lock is held until it is committed.
func (s *Sandbox) begin() *change {
	now := s.now()
	s.state.pruneKeys(now)
	return &change{st: s.state, now: now, entry: entry{At: now}}
}

// commit writes what a change did and sends its events on their way. The lock is held.
func (s *Sandbox) commit(c *change) {
	s.record(c.entry)
	for _, ev := range c.entry.Events {
		s.courier.send(ev, s.takeEventFault(ev.Type))
	}
}

// WaitCharges blocks until at least n charges stand in the ledger, or ctx ends.
func (s *Sandbox) WaitCharges(ctx context.Context, n int) error {
	return wait(ctx, &s.mu, &s.changed, fmt.Sprintf("%d charges", n), func() bool { return s.state.charged >= n })
}

// WaitHeld blocks until at least n requests are held by a hold or hold_before rule, or ctx ends.
func (s *Sandbox) WaitHeld(ctx context.Context, n int) error {
	return wait(ctx, &s.mu, &s.changed, fmt.Sprintf("%d held requests", n), func() bool { return s.held >= n })
}

// wait blocks until done, which is called with the lock held, says so, or ctx ends. changed is closed, and replaced, at every
// change.
func wait(ctx context.Context, mu *sync.Mutex, changed *chan struct{}, what string, done func() bool) error {
	for {
		mu.Lock()
		ok, next := done(), *changed
		mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-next:
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
	return Ledger{Charges: s.state.ledgerCharges(), Refunds: s.state.ledgerRefunds()}
}

// newID returns a fresh identifier of Stripe's form, such as pi_….
func newID(prefix string) string { return prefix + "_" + rand.Text() }
