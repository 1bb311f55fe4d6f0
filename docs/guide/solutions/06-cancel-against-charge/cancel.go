//go:build exercise

// Package exercise cancels orders while they are charged. The provider decides who was first, and the worker follows.
package exercise

// Order is what the database keeps of an order.
type Order struct {
	Cancelled bool
	HasIntent bool
	Payment   string // empty: pending; Succeeded or Canceled
	Refunded  bool
}

// Cancel is the customer's request. Without an intent nothing can have been charged, so that the payment ends at once;
// with one, only the provider can tell.
func Cancel(d *Database) {
	d.Update(func(o *Order) {
		o.Cancelled = true
		if o.Payment == "" && !o.HasIntent {
			o.Payment = Canceled
		}
	})
}

// Work is one run of the worker. It notes the intent before money can move, looks at the order again after that, acts on
// the state that the provider shows, and gives back what a cancelled order has paid.
func Work(d *Database, p *Provider) error {
	if err := settle(d, p); err != nil {
		return err
	}
	if o := d.Load(); o.Payment != Succeeded || !o.Cancelled || o.Refunded {
		return nil
	}
	if err := p.Refund(); err != nil {
		return err
	}
	d.Update(func(o *Order) { o.Refunded = true })
	return nil
}

// settle brings a pending payment to the state that the provider decides.
func settle(d *Database, p *Provider) error {
	d.Update(func(o *Order) { o.HasIntent = o.HasIntent || o.Payment == "" }) // from here on there may be one
	o := d.Load()
	if o.Payment != "" {
		return nil
	}
	if err := p.Create(); err != nil {
		return err
	}
	ask := p.Confirm
	if d.Load().Cancelled {
		ask = p.Cancel
	}
	if err := ask(); err != nil {
		return err
	}
	state, err := p.Retrieve()
	if err != nil {
		return err
	}
	d.Update(func(o *Order) { o.Payment = state })
	return nil
}
