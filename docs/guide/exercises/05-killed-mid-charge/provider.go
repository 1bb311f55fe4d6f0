package exercise

import (
	"errors"
	"strconv"
)

var (
	// ErrLost says that the connection broke: the call may or may not have been carried out.
	ErrLost = errors.New("the answer was lost")
	// ErrRefused says that the intent is not in a state for the call. Nothing happened.
	ErrRefused = errors.New("the provider refuses")
)

// Provider plays a payment provider. It remembers a key and its answer for a day.
type Provider struct {
	intents map[string]bool   // whether each has been charged
	keys    map[string]string // the intent of each key
	lose    int               // the call whose answer is lost
	calls   int
}

// NewProvider makes a provider that loses the answer to the n-th call of Create or Confirm; 0: none.
func NewProvider(n int) *Provider {
	return &Provider{intents: map[string]bool{}, keys: map[string]string{}, lose: n}
}

// Create makes an intent that is not confirmed: no money moves. A key that it remembers gives the same intent again.
func (p *Provider) Create(key string) (intent string, err error) {
	intent, known := p.keys[key]
	if !known {
		intent = "pi_" + strconv.Itoa(len(p.intents)+1)
		p.keys[key], p.intents[intent] = intent, false
	}
	return intent, p.answer()
}

// Confirm charges an intent. A key that it remembers charges once. Another key is refused where the intent is charged.
func (p *Provider) Confirm(key, intent string) error {
	if _, known := p.keys[key]; known {
		return p.answer()
	}
	charged, there := p.intents[intent]
	if !there || charged {
		return ErrRefused
	}
	p.keys[key], p.intents[intent] = intent, true
	return p.answer()
}

// Charged reads whether an intent has been charged.
func (p *Provider) Charged(intent string) bool { return p.intents[intent] }

// Forget lets a day pass.
func (p *Provider) Forget() { clear(p.keys) }

// Charges is how often it has charged.
func (p *Provider) Charges() (n int) {
	for _, charged := range p.intents {
		if charged {
			n++
		}
	}
	return n
}

func (p *Provider) answer() error {
	if p.calls++; p.calls == p.lose {
		return ErrLost
	}
	return nil
}
