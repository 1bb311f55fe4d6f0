// Package exercise charges orders, naively. Its tests fail until you have solved it: see docs/guide/5-a-worker-dies.md.
package exercise

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

// Charge is one run of the job that charges the order. After an error it is run again, a moment or two days later.
func Charge(d *Database, p *Provider) error {
	o := d.Load()
	intent, err := p.Create("create " + o.ID)
	if err != nil {
		return err
	}
	if err := p.Confirm("confirm "+o.ID, intent); err != nil {
		return err
	}
	o.Intent, o.Paid = intent, true
	d.Save(o)
	return nil
}
