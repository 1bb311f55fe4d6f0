package domain

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// OrderStatus is the state of an order; transitions.go lists the allowed transitions.
type OrderStatus string

// The states of an order.
const (
	OrderOpen      OrderStatus = "open"
	OrderShipped   OrderStatus = "shipped"
	OrderCancelled OrderStatus = "cancelled"
)

// ReasonPaymentFailed is the cancellation reason of an order whose charge was declined.
const ReasonPaymentFailed = "payment_failed"

// Bounds of an order.
const (
	MaxLines    = 100
	MaxQuantity = 10_000
	maxReason   = 500
)

// OrderID identifies an order within its tenant.
type OrderID = uuid.UUID

// Order is the aggregate of what a customer bought and where it ships. The payment is a separate aggregate, so that a
// successful charge or a refund does not change the order's version. A failed charge does, because it cancels the
// order.
type Order struct{ s OrderState }

// OrderState is an order's fields, for storage and responses.
type OrderState struct {
	Tenant       string
	ID           OrderID
	Customer     string // the actor that placed it
	Status       OrderStatus
	Lines        []Line
	Total        Money
	Address      Address
	Shipment     *Shipment
	Cancellation *Cancellation
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Line is one sku of an order, with the name and the price that the catalogue had when it was placed.
type Line struct {
	SKU       string
	Name      string
	Quantity  int64
	UnitPrice Money
}

// Shipment is the carrier's data of a shipped order.
type Shipment struct {
	Carrier        string
	TrackingNumber string
	ShippedAt      time.Time
}

// Cancellation is why and when an order was cancelled.
type Cancellation struct {
	Reason      string
	CancelledAt time.Time
}

// Item is a sku and a quantity.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// CheckItems adds what is wrong with the ordered items to v.
func CheckItems(v *Violations, lines []Item) {
	if len(lines) < 1 || len(lines) > MaxLines {
		v.Add("lines", "length", "must hold 1 to 100 lines")
	}
	for i, l := range lines {
		at := "lines/" + strconv.Itoa(i) + "/"
		if !ValidSKU(l.SKU) {
			v.Add(at+"sku", "pattern", "is not a sku")
		}
		if l.Quantity < 1 || l.Quantity > MaxQuantity {
			v.Add(at+"quantity", "range", "must be 1 to 10000")
		}
	}
}

// NewOrder is the input of PlaceOrder.
type NewOrder struct {
	Tenant   string
	ID       OrderID
	Customer string
	Currency string
	Items    []Item
	Address  Address
	At       time.Time
}

// PlaceOrder makes an open order at the catalogue's prices, never at prices that the caller sends. It refuses with
// product_unavailable, currency_mismatch or, for a total beyond int64, validation_failed.
func PlaceOrder(n NewOrder, catalogue map[string]ProductState) (*Order, error) {
	total := Money{Currency: n.Currency}
	lines := make([]Line, 0, len(n.Items))
	for _, w := range n.Items {
		p, ok := catalogue[w.SKU]
		if !ok || !p.Details.Active {
			return nil, Refuse(CodeProductUnavailable, "The product "+w.SKU+" is not for sale.")
		}
		if p.Details.Price.Currency != n.Currency {
			return nil, Refuse(CodeCurrencyMismatch, "The product "+w.SKU+" is not sold in "+n.Currency+".")
		}
		sum, err := p.Details.Price.Times(w.Quantity)
		if err == nil {
			total, err = total.Add(sum)
		}
		if err != nil {
			return nil, Violations{{"lines", "range", "the total is too large"}}.Err()
		}
		lines = append(lines, Line{SKU: w.SKU, Name: p.Details.Name, Quantity: w.Quantity, UnitPrice: p.Details.Price})
	}
	if !total.Chargeable() {
		return nil, Violations{{"lines", "range", "the total is too small or too large to be charged"}}.Err()
	}
	return &Order{OrderState{
		Tenant: n.Tenant, ID: n.ID, Customer: n.Customer, Status: OrderOpen, Lines: lines, Total: total,
		Address: n.Address, CreatedAt: n.At, UpdatedAt: n.At,
	}}, nil
}

// RestoreOrder rebuilds an order from storage.
func RestoreOrder(s OrderState) *Order { return &Order{s} }

// State returns the order's fields.
func (o *Order) State() OrderState { return o.s }

// Stored sets the version that the store gave the order.
func (o *Order) Stored(version int64) { o.s.Version = version }

// ChangeAddress replaces the shipping address. After shipment or cancellation it refuses with address_not_changeable.
func (o *Order) ChangeAddress(to Address, at time.Time) error {
	if err := o.s.Status.allows(ActionChangeAddress); err != nil {
		return err
	}
	o.s.Address, o.s.UpdatedAt = to, at
	return nil
}

// Ship marks the order as shipped. It refuses with payment_not_settled while the charge has not succeeded, and with
// order_not_shippable if the order is not open or is fully refunded.
func (o *Order) Ship(s Shipment, payment PaymentState) error {
	if err := o.s.Status.allows(ActionShip); err != nil {
		return err
	}
	switch {
	case payment.Status != PaymentSucceeded:
		return Refuse(CodePaymentNotSettled, "The order's payment has not succeeded.")
	case payment.Balance().Amount == 0:
		return Refuse(CodeOrderNotShippable, "The order has been refunded in full and cannot be shipped.")
	}
	o.s.Status, o.s.Shipment, o.s.UpdatedAt = OrderShipped, &s, s.ShippedAt
	return nil
}

// Cancel cancels an open order; otherwise it refuses with order_not_cancellable. The caller returns the Sold units to
// stock.
func (o *Order) Cancel(c Cancellation) error {
	if err := o.s.Status.allows(ActionCancel); err != nil {
		return err
	}
	o.s.Status, o.s.Cancellation, o.s.UpdatedAt = OrderCancelled, &c, c.CancelledAt
	return nil
}

// Sold returns the units of each sku in the order, in ascending order of sku, the order in which stock is locked.
func (s OrderState) Sold() []Item {
	items := make([]Item, len(s.Lines))
	for i, l := range s.Lines {
		items[i] = Item{l.SKU, l.Quantity}
	}
	return SumBySKU(items)
}

// SumBySKU adds up the quantities of each sku and sorts by sku (bytewise). All orders lock their stock in this order,
// so two orders with the same skus cannot deadlock.
func SumBySKU(lines []Item) []Item {
	sorted := slices.Clone(lines)
	slices.SortFunc(sorted, func(a, b Item) int { return strings.Compare(a.SKU, b.SKU) })
	sums := sorted[:0]
	for _, l := range sorted {
		if n := len(sums); n > 0 && sums[n-1].SKU == l.SKU {
			sums[n-1].Quantity += l.Quantity
			continue
		}
		sums = append(sums, l)
	}
	return sums
}

// CheckReason adds what is wrong with an optional reason to v.
func CheckReason(v *Violations, reason string) { checkText(v, "reason", reason, 0, maxReason) }

// Check adds what is wrong with the shipment to v.
func (s Shipment) Check(v *Violations) {
	checkText(v, "carrier", s.Carrier, 1, 100)
	checkText(v, "tracking_number", s.TrackingNumber, 1, 100)
}
