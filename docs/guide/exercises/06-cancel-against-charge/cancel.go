// Package exercise cancels orders while they are charged, naively. Its test fails until you have solved it: see
// docs/guide/6-cancelling.md.
package exercise

// Order is what the database keeps of an order. Add what you need.
type Order struct {
	Cancelled bool
	HasIntent bool
	Payment   string // empty: pending; Succeeded or Canceled
	Refunded  bool
}

// Cancel is the customer's request. It cannot wait for the provider.
func Cancel(d *Database) {
	d.Update(func(o *Order) {
		o.Cancelled = true
		if o.Payment == "" {
			o.Payment = Canceled
		}
	})
}

// Work is one run of the worker. It is run again after an error, and after a cancellation.
func Work(d *Database, p *Provider) error {
	o := d.Load()
	if o.Payment != "" {
		return nil
	}
	if !o.HasIntent {
		if err := p.Create(); err != nil {
			return err
		}
		d.Update(func(o *Order) { o.HasIntent = true })
	}
	if err := p.Confirm(); err != nil {
		return err
	}
	d.Update(func(o *Order) { o.Payment = Succeeded })
	return nil
}
