package exercise

import "errors"

// ErrLost says that the connection broke: the call may or may not have been carried out.
var ErrLost = errors.New("the answer was lost")

// The states of an intent.
const (
	Unconfirmed = "unconfirmed"
	Succeeded   = "succeeded"
	Canceled    = "canceled"
)

// Provider plays a payment provider with one order. It refuses what an intent's state does not have: then nothing happens, and
// Retrieve tells the state.
type Provider struct {
	Intent   string // its state; empty: there is none
	Refunded bool
	Refunds  int // calls that moved money

	between func() // what happens before each step
	calls   int
	lose    int // the call whose answer is lost
}

// Create makes the intent, or finds it.
func (p *Provider) Create() error {
	return p.call(func() {
		if p.Intent == "" {
			p.Intent = Unconfirmed
		}
	})
}

// Confirm charges, unless the intent is succeeded or canceled.
func (p *Provider) Confirm() error { return p.move(Succeeded) }

// Cancel cancels the intent, unless it is succeeded.
func (p *Provider) Cancel() error { return p.move(Canceled) }

// Retrieve reads the intent's state.
func (p *Provider) Retrieve() (state string, err error) {
	err = p.call(func() { state = p.Intent })
	return state, err
}

// Refund gives the money back, once.
func (p *Provider) Refund() error {
	return p.call(func() {
		if p.Intent == Succeeded && !p.Refunded {
			p.Refunded = true
			p.Refunds++
		}
	})
}

func (p *Provider) move(to string) error {
	return p.call(func() {
		if p.Intent == Unconfirmed {
			p.Intent = to
		}
	})
}

func (p *Provider) call(do func()) error {
	p.step()
	do()
	if p.calls++; p.calls == p.lose {
		return ErrLost
	}
	return nil
}

func (p *Provider) step() {
	if p.between != nil {
		p.between()
	}
}

// Database keeps one order.
type Database struct {
	order   Order
	between func()
}

// Load reads the order as it is now.
func (d *Database) Load() Order {
	d.step()
	return d.order
}

// Update is a transaction: it locks the order, changes it and commits.
func (d *Database) Update(change func(o *Order)) {
	d.step()
	change(&d.order)
}

func (d *Database) step() {
	if d.between != nil {
		d.between()
	}
}
