//go:build exercise

// Package exercise charges orders. It rests on the provider's state, not on how long the provider keeps keys.
package exercise

import "errors"

// Order is what the database keeps of an order.
type Order struct {
	ID     string
	Intent string // at the provider; empty: not known
	Paid   bool
}

// Database keeps one order.
type Database struct{ order Order }

// Load reads the order.
func (d *Database) Load() Order { return d.order }

// Save commits the order.
func (d *Database) Save(o Order) { d.order = o }

// Charge is one run of the job that charges the order. The intent's id is committed before money can move; from then on
// every run asks the intent what happened.
func Charge(d *Database, p *Provider) error {
	o := d.Load()
	if o.Paid {
		return nil
	}
	if o.Intent == "" {
		intent, err := p.Create("create " + o.ID)
		if err != nil {
			return err
		}
		o.Intent = intent
		d.Save(o)
	}
	if !p.Charged(o.Intent) {
		if err := p.Confirm("confirm "+o.ID, o.Intent); err != nil && !errors.Is(err, ErrRefused) {
			return err
		}
	}
	o.Paid = p.Charged(o.Intent)
	d.Save(o)
	return nil
}
