package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure no parcel leaves for one address while its order shows another: of a shipment and an address change that saw
// the same version the first wins, and the other is told.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictAddressChangeAgainstShipment(t *testing.T) {
	t.Parallel()
	requireOneWins(t, redirect("2 Low Street"), shipment("JD01"))
}

// Ensure a cancelled order is never shipped.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictShipmentAgainstCancellation(t *testing.T) {
	t.Parallel()
	requireOneWins(t, shipment("JD01"), cancellation("too slow"))
}

// Ensure a shipped order is never cancelled, and that neither its stock nor its money comes back.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictCancellationAgainstShipment(t *testing.T) {
	t.Parallel()
	s := openPausing(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	tag := s.order(order).Header.Get("ETag")
	ship, cancel := shipment("JD01"), cancellation("too slow")
	shipped, refused := s.inOrder(s.hold("payments", order), // the shipment has locked its order and looks at the payment
		func() testkit.Answer { return ship.send(s, order, tag) },
		func() testkit.Answer { return cancel.send(s, order, tag) })
	requireStatus(t, 200, shipped)
	requireRefused(t, refused, 409, "version_conflict")
	requireRefused(t, cancel.send(s, order, shipped.Header.Get("ETag")), 409, "order_not_cancellable")
	require.True(t, ship.stored(s.order(order)))
	require.EqualValues(t, shopStock-2, s.OnHand(t, shopSKU))
	require.Zero(t, s.Count(t, "refunds"))
	require.Zero(t, s.Count(t, `river_job WHERE kind = 'refund-charge'`))
}

// Ensure of two addresses for one version the first counts, and the caller of the second is told that it does not.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictAddressChangeAgainstAddressChange(t *testing.T) {
	t.Parallel()
	requireOneWins(t, redirect("2 Low Street"), redirect("3 Side Street"))
}

// Ensure an address change of a cancelled order is refused.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictAddressChangeAgainstCancellation(t *testing.T) {
	t.Parallel()
	requireOneWins(t, redirect("2 Low Street"), cancellation("moving away"))
}

// Ensure two cancellations with keys of their own end an order once.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictCancellationAgainstCancellation(t *testing.T) {
	t.Parallel()
	requireOneWins(t, cancellation("too slow"), cancellation("too dear"))
}

// Ensure one parcel is noted for an order, and not another in its place.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictShipmentAgainstShipment(t *testing.T) {
	t.Parallel()
	requireOneWins(t, shipment("JD01"), shipment("JD02"))
}

// Ensure of twenty callers with one version exactly one is accepted, whatever they want of the order.
//
// Standard: litespec/ext/concurrency#compare-expected-aggregate-versions
func TestConflictTwentyCallersWithOneVersionOfAnOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	tag := s.order(order).Header.Get("ETag")
	moves := make([]move, 20)
	for i := range moves {
		made := []func(string) move{redirect, shipment, cancellation}[i%3]
		moves[i] = made(fmt.Sprintf("number %d", i))
	}
	winner := requireOneOf(t, len(moves), func(i int) testkit.Answer { return moves[i].send(s, order, tag) })
	stored, shown := s.order(order), 0
	for _, m := range moves {
		if m.stored(stored) {
			shown++
		}
	}
	require.Equal(t, 1, shown, string(stored.Body))
	require.Equal(t, winner.Header.Get("ETag"), stored.Header.Get("ETag"))
	require.EqualValues(t, 2, s.version("orders", "id", order))
}

// Ensure a parcel waits for the provider's answer that is being recorded, and is refused while there is none: the
// payment is read under its lock.
func TestConflictShipmentWaitsForThePayment(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t)
	s.StartWorker(t)
	s.faults(fault("charge", "hold", 0))
	order := s.place("pm_card_visa")
	tag := s.order(order).Header.Get("ETag")
	ship := shipment("JD01")
	requireRefused(t, ship.send(s, order, tag), 409, "payment_not_settled")
	s.held(1)
	requireRefused(t, ship.send(s, order, tag), 409, "payment_not_settled")

	startShip, shipped := later(func() testkit.Answer { return ship.send(s, order, tag) })
	s.queue(s.hold("orders", order), s.Sandbox.ClearFaults, startShip) // the worker records the answer, then the shipment
	requireStatus(t, 200, shipped())
	require.True(t, ship.stored(s.order(order)))
}

// Ensure no parcel leaves once all of its money is on its way back, although the refund leaves the order's version as it
// was: the shipment waits for the refund's commit and reads the balance that it left. In the other order both are
// accepted, since a shipped order can be refunded. A refund of a part stops no parcel.
func TestConflictShipmentAgainstFullRefund(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	ship := shipment("JD01")
	tests := []struct {
		name        string
		refundFirst bool
		amount      int
		shipped     bool
	}{
		{"the refund first", true, shopTotal, false},
		{"the shipment first", false, shopTotal, true},
		{"a refund of a part first", true, shopTotal - 1, true},
	}
	for _, test := range tests {
		order := s.placePaid("pm_card_visa")
		tag := s.order(order).Header.Get("ETag")
		refund := func() testkit.Answer { return s.refund(order, "refund-"+order, test.amount) }
		send := func() testkit.Answer { return ship.send(s, order, tag) }
		var shipped, refunded testkit.Answer
		if row := s.hold("payments", order); test.refundFirst {
			refunded, shipped = s.inOrder(row, refund, send)
		} else {
			shipped, refunded = s.inOrder(row, send, refund)
		}
		require.Equal(t, 202, refunded.Status, "%s: %s", test.name, refunded.Body)
		require.Equal(t, test.shipped, ship.stored(s.order(order)), test.name)
		if test.shipped {
			require.Equal(t, 200, shipped.Status, "%s: %s", test.name, shipped.Body)
		} else {
			requireRefused(t, shipped, 409, "order_not_shippable")
			require.Equal(t, tag, s.order(order).Header.Get("ETag"), "the version alone would have let it pass")
		}
	}
}
