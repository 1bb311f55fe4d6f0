package main

import (
	"context"
	"net/http"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

func editTwice(ctx context.Context, s *step) error {
	id, err := s.bought(ctx, tea, 1)
	if err != nil {
		return err
	}
	alice := s.as("alice")
	_, err = alice.ChangeShippingAddress(ctx, id, "", home())
	s.check(s.last().status == http.StatusPreconditionRequired && client.HasCode(err, openapi.ProblemCodePreconditionRequired),
		"without the version that she saw: 428 precondition_required")
	seen, err := alice.GetOrder(ctx, id)
	if err != nil {
		return err
	}
	s.story.line("", "One tab moves the parcel to Bonn; another one, which has read the same version, adds a line.")
	moved := home()
	moved.City, moved.PostalCode = "Bonn", "53111"
	if _, err := alice.ChangeShippingAddress(ctx, id, seen.ETag, moved); err != nil {
		return err
	}
	stale := home()
	stale.Line2 = new("Ring twice")
	_, err = alice.ChangeShippingAddress(ctx, id, seen.ETag, stale)
	s.check(client.HasCode(err, openapi.ProblemCodeVersionConflict), "the second save is refused: 409 version_conflict")
	s.story.line("", "So it reads again, and makes its change to what is there now (client.Update does just this).")
	merged, err := client.Update(ctx,
		func(ctx context.Context) (client.Answer[openapi.Order], error) { return alice.GetOrder(ctx, id) },
		func(o openapi.Order) (openapi.Address, error) {
			o.ShippingAddress.Line2 = new("Ring twice")
			return o.ShippingAddress, nil
		},
		func(ctx context.Context, tag client.ETag, to openapi.Address) (client.Answer[openapi.Order], error) {
			return alice.ChangeShippingAddress(ctx, id, tag, to)
		})
	if err != nil {
		return err
	}
	to := merged.Value.ShippingAddress
	s.check(to.City == "Bonn" && to.Line2 != nil && *to.Line2 == "Ring twice", "both changes are in the order")
	return nil
}

// contest is a shipment by staff against what the customer does to the same version of the same order.
type contest struct {
	id       openapi.OrderID
	seen     client.ETag
	ship     func() error
	customer func() error
}

func parcel() openapi.ShipOrderRequest {
	return openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "JD014600003RU"}
}

// newContest makes a paid order that both have read.
func (s *step) newContest(
	ctx context.Context, customer func(alice *client.Client, id openapi.OrderID, seen client.ETag) error,
) (contest, error) {
	id, err := s.bought(ctx, tea, 1)
	if err != nil {
		return contest{}, err
	}
	order, err := s.quiet.GetOrder(ctx, id)
	if err != nil {
		return contest{}, err
	}
	alice, sam, seen := s.as("alice"), s.as("sam"), order.ETag
	return contest{
		id: id, seen: seen,
		ship:     func() error { _, err := sam.ShipOrder(ctx, id, seen, parcel()); return err },
		customer: func() error { return customer(alice, id, seen) },
	}, nil
}

func addressAgainstShipment(ctx context.Context, s *step) error {
	elsewhere := home()
	elsewhere.Line1 = "Flat 3, 12 Quay"
	move := func(alice *client.Client, id openapi.OrderID, seen client.ETag) error {
		_, err := alice.ChangeShippingAddress(ctx, id, seen, elsewhere)
		return err
	}
	if err := s.shipmentFirst(ctx, move, openapi.ProblemCodeAddressNotChangeable); err != nil {
		return err
	}
	c, err := s.newContest(ctx, move)
	if err != nil {
		return err
	}
	moved, shipped, err := s.race(ctx, orderRow(c.id), c.customer, c.ship)
	if err != nil {
		return err
	}
	s.check(moved == nil && client.HasCode(shipped, openapi.ProblemCodeVersionConflict),
		"the address came first; the shipment is refused: 409 version_conflict")
	s.story.line("", "Sam reads again, packs for the address that is there now, and ships.")
	now, err := s.as("sam").GetOrder(ctx, c.id)
	if err != nil {
		return err
	}
	left, err := s.as("sam").ShipOrder(ctx, c.id, now.ETag, parcel())
	if err != nil {
		return err
	}
	s.check(now.Value.ShippingAddress == elsewhere && left.Value.ShippingAddress == elsewhere,
		"the parcel left for the address that the order shows")
	return nil
}

// shipmentFirst lets the shipment win: the customer is refused, and refused for good once the order is read again.
func (s *step) shipmentFirst(
	ctx context.Context, late func(*client.Client, openapi.OrderID, client.ETag) error, forGood openapi.ProblemCode,
) error {
	c, err := s.newContest(ctx, late)
	if err != nil {
		return err
	}
	shipped, refused, err := s.race(ctx, orderRow(c.id), c.ship, c.customer)
	if err != nil {
		return err
	}
	s.check(shipped == nil && client.HasCode(refused, openapi.ProblemCodeVersionConflict),
		"the shipment came first; Alice is refused: 409 version_conflict")
	now, err := s.as("alice").GetOrder(ctx, c.id)
	if err != nil {
		return err
	}
	s.check(client.HasCode(late(s.as("alice"), c.id, now.ETag), forGood), "read again and tried again, it is 409 %s", forGood)
	s.check(now.Value.Status == openapi.OrderStatusShipped && now.Value.ShippingAddress == home(),
		"the order is shipped, to the address that the parcel was packed for")
	s.check(s.account(c.id) == account{charges: 1, charged: 1999}, "it is paid, and nothing was refunded")
	return nil
}

func cancelAgainstShipment(ctx context.Context, s *step) error {
	cancel := func(alice *client.Client, id openapi.OrderID, seen client.ETag) error {
		_, err := alice.CancelOrder(ctx, id, seen, openapi.CancelOrderRequest{Reason: new("changed my mind")})
		return err
	}
	if err := s.shipmentFirst(ctx, cancel, openapi.ProblemCodeOrderNotCancellable); err != nil {
		return err
	}
	stock := s.onHand(ctx, tea)
	c, err := s.newContest(ctx, cancel)
	if err != nil {
		return err
	}
	cancelled, shipped, err := s.race(ctx, orderRow(c.id), c.customer, c.ship)
	if err != nil {
		return err
	}
	s.check(cancelled == nil && client.HasCode(shipped, openapi.ProblemCodeVersionConflict),
		"the cancellation came first; the shipment is refused: 409 version_conflict")
	now, err := s.as("sam").GetOrder(ctx, c.id)
	if err != nil {
		return err
	}
	_, err = s.as("sam").ShipOrder(ctx, c.id, now.ETag, parcel())
	s.check(client.HasCode(err, openapi.ProblemCodeOrderNotShippable), "read again and tried again, it is 409 order_not_shippable")
	return s.cancelledAndRefunded(ctx, c.id, 1999, stock)
}

// cancelledAndRefunded checks that a cancelled order was charged and refunded once each, and that its stock is back.
func (s *step) cancelledAndRefunded(ctx context.Context, id openapi.OrderID, amount, stock int64) error {
	payment, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded)
	if err != nil {
		return err
	}
	order, err := s.quiet.GetOrder(ctx, id)
	if err != nil {
		return err
	}
	s.showLedger(id)
	s.check(order.Value.Status == openapi.OrderStatusCancelled && order.Value.Shipment == nil, "the order is cancelled, and not shipped")
	s.check(len(payment.Refunds) == 1 && payment.Refunded.Amount == amount, "the payment shows one refund, of all that was paid")
	s.check(s.account(id) == account{charges: 1, charged: amount, refunds: 1, refunded: amount},
		"the ledger has one charge and one refund of it")
	s.check(s.onHand(ctx, tea) == stock, "its stock is back on the shelf")
	return nil
}
