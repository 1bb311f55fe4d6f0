package app

import (
	"context"

	"example.com/orders/internal/domain"
)

// PlaceOrderInput is the input of place-order. Its JSON is the canonical input of the fingerprint.
type PlaceOrderInput struct {
	Currency      string         `json:"currency"`
	Lines         []domain.Item  `json:"lines"`
	Address       domain.Address `json:"shipping_address"`
	PaymentMethod string         `json:"payment_method"`
}

func (in PlaceOrderInput) validate() error {
	var v domain.Violations
	if !domain.ValidCurrency(in.Currency) {
		v.Add("currency", "pattern", "is not a currency that can be charged")
	}
	domain.CheckItems(&v, in.Lines)
	in.Address.Check(&v, "shipping_address/")
	if !domain.ValidPaymentMethod(in.PaymentMethod) {
		v.Add("payment_method", "pattern", "is not a payment method's token")
	}
	return v.Err()
}

// PlaceOrder reserves stock, stores the order with its pending payment, and enqueues a charge-order job in the outbox,
// all in one transaction.
func (s *Service) PlaceOrder(ctx context.Context, a Actor, k Keyed[domain.OrderState], in PlaceOrderInput) (Outcome, error) {
	return runKeyed(ctx, s, Command[domain.OrderState]{
		UseCase:  UseCasePlaceOrder,
		Actor:    a,
		Target:   NoOrder(),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.OrderState, error) {
			return s.placeOrder(ctx, tx, a, in)
		},
		Keyed: k,
		Input: in,
	})
}

func (s *Service) placeOrder(ctx context.Context, tx Tx, a Actor, in PlaceOrderInput) (domain.OrderState, error) {
	sums := domain.SumBySKU(in.Lines)
	catalogue, shelf, err := tx.Products().ForSale(ctx, a.Tenant, skus(sums))
	if err != nil {
		return domain.OrderState{}, err
	}
	order, err := domain.PlaceOrder(domain.NewOrder{
		Tenant: a.Tenant, ID: s.newID(), Customer: a.ID, Currency: in.Currency, Items: in.Lines,
		Address: in.Address, At: tx.Now(),
	}, catalogue)
	if err != nil {
		return domain.OrderState{}, err
	}
	if err := moveStock(ctx, tx, order.State(), shelf, (*domain.Stock).Reserve); err != nil {
		return domain.OrderState{}, err
	}
	if err := tx.Orders().Add(ctx, order); err != nil {
		return domain.OrderState{}, err
	}
	if err := tx.Payments().Add(ctx, domain.NewPayment(order.State(), in.PaymentMethod)); err != nil {
		return domain.OrderState{}, err
	}
	if err := tx.Outbox().ChargeOrder(ctx, OrderRef{a.Tenant, order.State().ID}); err != nil {
		return domain.OrderState{}, err
	}
	return order.State(), nil
}
