package app

import (
	"context"

	"example.com/orders/internal/domain"
)

// ChangeAddressInput is the new shipping address of an order.
type ChangeAddressInput struct {
	OrderID  domain.OrderID
	Expected Expected
	Address  domain.Address
}

func (in ChangeAddressInput) validate() error {
	var v domain.Violations
	in.Address.Check(&v, "")
	return v.Err()
}

// ChangeShippingAddress conflicts with ship-order and with itself, so the caller must send the current version.
func (s *Service) ChangeShippingAddress(ctx context.Context, a Actor, in ChangeAddressInput) (domain.OrderState, error) {
	return run(ctx, s, Command[domain.OrderState]{
		UseCase:  UseCaseChangeShippingAddress,
		Actor:    a,
		Target:   TheOrder(in.OrderID),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.OrderState, error) {
			return changeOrder(ctx, tx, OrderRef{a.Tenant, in.OrderID}, in.Expected, func(o *domain.Order) error {
				return o.ChangeAddress(in.Address, tx.Now())
			})
		},
	})
}

// changeOrder locks an order, compares the caller's version, applies the change and saves the order.
func changeOrder(
	ctx context.Context, tx Tx, ref OrderRef, expected Expected, change func(*domain.Order) error,
) (domain.OrderState, error) {
	order, err := tx.Orders().ForUpdate(ctx, ref.Tenant, ref.OrderID)
	if err != nil {
		return domain.OrderState{}, err
	}
	if err := expected.check(order.State().Version); err != nil {
		return domain.OrderState{}, err
	}
	if err := change(order); err != nil {
		return domain.OrderState{}, err
	}
	if err := tx.Orders().Save(ctx, order); err != nil {
		return domain.OrderState{}, err
	}
	return order.State(), nil
}

// ShipOrderInput records the shipment of an order.
type ShipOrderInput struct {
	OrderID        domain.OrderID
	Expected       Expected
	Carrier        string
	TrackingNumber string
}

func (in ShipOrderInput) validate() error {
	var v domain.Violations
	domain.Shipment{Carrier: in.Carrier, TrackingNumber: in.TrackingNumber}.Check(&v)
	return v.Err()
}

// ShipOrder conflicts with change-shipping-address and cancel-order. It locks the payment too, because only a paid
// order ships.
func (s *Service) ShipOrder(ctx context.Context, a Actor, in ShipOrderInput) (domain.OrderState, error) {
	ref := OrderRef{a.Tenant, in.OrderID}
	return run(ctx, s, Command[domain.OrderState]{
		UseCase:  UseCaseShipOrder,
		Actor:    a,
		Target:   TheOrder(in.OrderID),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.OrderState, error) {
			return changeOrder(ctx, tx, ref, in.Expected, func(o *domain.Order) error {
				payment, err := tx.Payments().ForUpdate(ctx, a.Tenant, in.OrderID)
				if err != nil {
					return err
				}
				return o.Ship(domain.Shipment{
					Carrier: in.Carrier, TrackingNumber: in.TrackingNumber, ShippedAt: tx.Now(),
				}, payment.State())
			})
		},
	})
}

// CancelOrderInput cancels an order that has not shipped. Its JSON is part of the fingerprint's canonical input. It
// includes the expected version, so the same key with a different If-Match is a different request.
type CancelOrderInput struct {
	OrderID  domain.OrderID `json:"-"` // part of the route
	Expected Expected       `json:"expected"`
	Reason   string         `json:"reason,omitzero"`
}

func (in CancelOrderInput) validate() error {
	var v domain.Violations
	domain.CheckReason(&v, in.Reason)
	return v.Err()
}

// CancelOrder conflicts with ship-order. Stock is returned in the same transaction. A settled charge is refunded by an
// outbox job. A charge that was not requested yet never happens. If a charge is in progress, charge-order waits for its
// outcome and then refunds it.
func (s *Service) CancelOrder(ctx context.Context, a Actor, k Keyed[domain.OrderState], in CancelOrderInput) (Outcome, error) {
	return runKeyed(ctx, s, Command[domain.OrderState]{
		UseCase:  UseCaseCancelOrder,
		Actor:    a,
		Target:   TheOrder(in.OrderID),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.OrderState, error) {
			return s.cancelOrder(ctx, tx, OrderRef{a.Tenant, in.OrderID}, in)
		},
		Keyed: k,
		Input: in,
	})
}

func (s *Service) cancelOrder(ctx context.Context, tx Tx, ref OrderRef, in CancelOrderInput) (domain.OrderState, error) {
	order, err := changeOrder(ctx, tx, ref, in.Expected, func(o *domain.Order) error {
		return o.Cancel(domain.Cancellation{Reason: in.Reason, CancelledAt: tx.Now()})
	})
	if err != nil {
		return domain.OrderState{}, err
	}
	if err := s.releasePayment(ctx, tx, ref, in.Reason); err != nil {
		return domain.OrderState{}, err
	}
	return order, returnStock(ctx, tx, order)
}

// releasePayment cancels or refunds the payment of a cancelled order, depending on its state. Once an intent exists,
// the provider decides whether the charge or the cancellation came first; a settle-payment job asks it immediately.
func (s *Service) releasePayment(ctx context.Context, tx Tx, ref OrderRef, reason string) error {
	payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
	if err != nil {
		return err
	}
	switch p := payment.State(); {
	case p.Status == domain.PaymentSucceeded:
		err = s.refundBalance(ctx, tx, payment, reason)
	case neverAsked(domain.OrderCancelled, p):
		err = payment.Cancel(tx.Now())
	default:
		return tx.Outbox().SettlePayment(ctx, ref, "")
	}
	if err != nil {
		return err
	}
	return tx.Payments().Save(ctx, payment)
}
