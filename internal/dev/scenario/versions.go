package scenario

import (
	"context"
	"net/http"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

func staleEditor(r *Run) {
	id, alice := r.bought(tea, 1), r.as("alice")
	_, err := alice.ChangeShippingAddress(r.ctx, id, "", home())
	r.check(r.last().Status == http.StatusPreconditionRequired && client.HasCode(err, openapi.ProblemCodePreconditionRequired),
		"without the version that she saw: 428 precondition_required")
	seen := must2(alice.GetOrder(r.ctx, id))(r)
	r.say("", "One tab moves the parcel to Bonn; another one, which has read the same version, adds a line.")
	moved := home()
	moved.City, moved.PostalCode = "Bonn", "53111"
	must2(alice.ChangeShippingAddress(r.ctx, id, seen.ETag, moved))(r)
	stale := home()
	stale.Line2 = new("Ring twice")
	_, err = alice.ChangeShippingAddress(r.ctx, id, seen.ETag, stale)
	r.check(client.HasCode(err, openapi.ProblemCodeVersionConflict), "the second save is refused: 409 version_conflict")
	r.say("", "So it reads again, and makes its change to what is there now (client.Update does just this).")
	merged := must2(client.Update(r.ctx,
		func(ctx context.Context) (client.Answer[openapi.Order], error) { return alice.GetOrder(ctx, id) },
		func(o openapi.Order) (openapi.Address, error) {
			o.ShippingAddress.Line2 = new("Ring twice")
			return o.ShippingAddress, nil
		},
		func(ctx context.Context, tag client.ETag, to openapi.Address) (client.Answer[openapi.Order], error) {
			return alice.ChangeShippingAddress(ctx, id, tag, to)
		}))(r)
	to := merged.Value.ShippingAddress
	r.check(to.City == "Bonn" && to.Line2 != nil && *to.Line2 == "Ring twice", "both changes are in the order")
}

// firstKnob says who comes first to the row that both need.
func firstKnob(customer string) Knob {
	return choose("first", "who comes first", both, "each in turn", "the shipment", customer)
}

// The choices of firstKnob.
const (
	both = iota + 1
	shipmentFirst
	customerFirst
)

// contest is a shipment by staff against what the customer does to the same version of the same order.
type contest struct {
	id       openapi.OrderID
	ship     func() error
	customer func() error
}

// change is what a customer does to a version of an order.
type change func(alice *client.Client, id openapi.OrderID, seen client.ETag) error

func parcel() openapi.ShipOrderRequest {
	return openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "JD014600003RU"}
}

// newContest makes a paid order that both have read.
func (r *Run) newContest(customer change) contest {
	id := r.bought(tea, 1)
	seen := must2(r.quiet().GetOrder(r.ctx, id))(r).ETag
	alice, sam := r.as("alice"), r.as("sam")
	return contest{
		id:       id,
		ship:     func() error { _, err := sam.ShipOrder(r.ctx, id, seen, parcel()); return err },
		customer: func() error { return customer(alice, id, seen) },
	}
}

func addressAgainstShipment(r *Run) {
	elsewhere := home()
	elsewhere.Line1 = "Flat 3, 12 Quay"
	move := func(alice *client.Client, id openapi.OrderID, seen client.ETag) error {
		_, err := alice.ChangeShippingAddress(r.ctx, id, seen, elsewhere)
		return err
	}
	if r.knobs["first"] != customerFirst {
		r.shipmentWins(move, openapi.ProblemCodeAddressNotChangeable)
	}
	if r.knobs["first"] == shipmentFirst {
		return
	}
	c := r.newContest(move)
	moved, shipped := r.race(orderRow(c.id), c.customer, c.ship)
	r.check(moved == nil && client.HasCode(shipped, openapi.ProblemCodeVersionConflict),
		"the address came first; the shipment is refused: 409 version_conflict")
	r.say("", "Sam reads again, packs for the address that is there now, and ships.")
	now := must2(r.as("sam").GetOrder(r.ctx, c.id))(r)
	left := must2(r.as("sam").ShipOrder(r.ctx, c.id, now.ETag, parcel()))(r)
	r.check(now.Value.ShippingAddress == elsewhere && left.Value.ShippingAddress == elsewhere,
		"the parcel left for the address that the order shows")
}

// shipmentWins lets the shipment come first: the customer is refused, and refused for good once the order is read again.
func (r *Run) shipmentWins(late change, forGood openapi.ProblemCode) {
	c := r.newContest(late)
	shipped, refused := r.race(orderRow(c.id), c.ship, c.customer)
	r.check(shipped == nil && client.HasCode(refused, openapi.ProblemCodeVersionConflict),
		"the shipment came first; Alice is refused: 409 version_conflict")
	now := must2(r.as("alice").GetOrder(r.ctx, c.id))(r)
	r.check(client.HasCode(late(r.as("alice"), c.id, now.ETag), forGood), "read again and tried again, it is 409 %s", forGood)
	r.check(now.Value.Status == openapi.OrderStatusShipped && now.Value.ShippingAddress == home(),
		"the order is shipped, to the address that the parcel was packed for")
	equal(r, account{charges: 1, charged: teaPrice}, r.account(c.id), "it is paid, and nothing was refunded")
}

func shipAgainstCancel(r *Run) {
	cancel := func(alice *client.Client, id openapi.OrderID, seen client.ETag) error {
		_, err := alice.CancelOrder(r.ctx, id, seen, openapi.CancelOrderRequest{Reason: new("changed my mind")})
		return err
	}
	if r.knobs["first"] != customerFirst {
		r.shipmentWins(cancel, openapi.ProblemCodeOrderNotCancellable)
	}
	if r.knobs["first"] == shipmentFirst {
		return
	}
	stock := r.OnHand(r, tea)
	c := r.newContest(cancel)
	cancelled, shipped := r.race(orderRow(c.id), c.customer, c.ship)
	r.check(cancelled == nil && client.HasCode(shipped, openapi.ProblemCodeVersionConflict),
		"the cancellation came first; the shipment is refused: 409 version_conflict")
	now := must2(r.as("sam").GetOrder(r.ctx, c.id))(r)
	_, err := r.as("sam").ShipOrder(r.ctx, c.id, now.ETag, parcel())
	r.check(client.HasCode(err, openapi.ProblemCodeOrderNotShippable), "read again and tried again, it is 409 order_not_shippable")
	r.cancelledAndRefunded(c.id, teaPrice, stock)
}
