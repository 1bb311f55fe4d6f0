package scenario

import (
	"fmt"

	"example.com/orders/client/openapi"
)

const (
	tea, teaPrice = "TEA-001", 1999
	mug, lamp     = "MUG-001", "RARE-001"
)

func home() openapi.Address {
	return openapi.Address{Name: "Alice Ames", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE"}
}

func basket(sku string, quantity int64) openapi.PlaceOrderRequest {
	return openapi.PlaceOrderRequest{
		Currency: "EUR", Lines: []openapi.OrderLineRequest{{SKU: sku, Quantity: quantity}},
		ShippingAddress: home(), PaymentMethod: "pm_card_visa",
	}
}

func euros(cents int64) string { return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100) }

// orders is how many orders there are.
func (r *Run) orders() int { return r.Count(r, "orders") }

// paid waits until the charge of an order has ended in a state, and no refund of it is on its way.
func (r *Run) paid(id openapi.OrderID, status openapi.PaymentStatus) (p openapi.Payment) {
	quiet := r.quiet()
	r.until("payment "+string(status)+" of order "+id.String(), func() bool {
		p = must2(quiet.GetPayment(r.ctx, id))(r).Value
		return p.Status == status && !refunding(p)
	})
	return p
}

func refunding(p openapi.Payment) bool {
	for _, r := range p.Refunds {
		if r.Status == openapi.RefundStatusPending {
			return true
		}
	}
	return false
}

// account is what the provider's ledger says of one order.
type account struct {
	charges, declined, refunds int
	charged, refunded          int64
}

func (r *Run) account(id openapi.OrderID) (a account) {
	ledger := r.Sandbox.Ledger()
	for _, c := range ledger.Charges {
		switch {
		case c.OrderID != id.String():
		case c.Status == "succeeded":
			a.charges++
			a.charged += c.Amount
		default:
			a.declined++
		}
	}
	for _, f := range ledger.Refunds {
		if f.OrderID == id.String() && f.Status == "succeeded" {
			a.refunds++
			a.refunded += f.Amount
		}
	}
	return a
}

// showLedger tells what the provider has on an order.
func (r *Run) showLedger(id openapi.OrderID) {
	ledger, shown := r.Sandbox.Ledger(), false
	for _, c := range ledger.Charges {
		if c.OrderID == id.String() {
			r.say("ledger", "charge %s %s %s", c.ID, euros(c.Amount), c.Status)
			shown = true
		}
	}
	for _, c := range ledger.Refunds {
		if c.OrderID == id.String() {
			r.say("ledger", "refund %s %s %s", c.ID, euros(c.Amount), c.Status)
		}
	}
	if !shown {
		r.say("ledger", "nothing")
	}
}

// chargedOnce checks what the provider's ledger has on an order that was paid and not refunded.
func (r *Run) chargedOnce(id openapi.OrderID, amount int64) {
	r.paid(id, openapi.PaymentStatusSucceeded)
	r.showLedger(id)
	equal(r, account{charges: 1, charged: amount}, r.account(id), "the ledger has one charge of %s for the order", euros(amount))
}

// bought is an order that is paid, placed without being told of.
func (r *Run) bought(sku string, quantity int64) openapi.OrderID {
	id := must2(r.untold("alice").PlaceOrder(r.ctx, basket(sku, quantity)))(r).Value.ID
	p := r.paid(id, openapi.PaymentStatusSucceeded)
	r.say("", "Alice has an open order, paid with %s: %s", euros(p.Amount.Amount), id)
	return id
}
