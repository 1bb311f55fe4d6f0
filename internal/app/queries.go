package app

import (
	"context"

	"example.com/orders/internal/domain"
)

// Page is one page of a list in a stable order.
type Page[T any] struct {
	Items []T
	More  bool
}

func page[T any](items []T, limit int) Page[T] {
	if len(items) > limit {
		return Page[T]{Items: items[:limit], More: true}
	}
	return Page[T]{Items: items}
}

func (a Actor) allow(u UseCase) error {
	if !a.Has(u.Scope) {
		return ErrForbidden
	}
	return nil
}

// GetOrder returns an order of the actor, or with orders:admin any order of the tenant.
func (s *Service) GetOrder(ctx context.Context, a Actor, id domain.OrderID) (domain.OrderState, error) {
	if err := a.allow(UseCaseGetOrder); err != nil {
		return domain.OrderState{}, err
	}
	o, err := s.reader.Order(ctx, a.Tenant, id)
	if err != nil {
		return domain.OrderState{}, notFoundAs(err, ErrOrderNotFound)
	}
	if !a.mayTouch(o.Customer, UseCaseGetOrder) {
		return domain.OrderState{}, ErrOrderNotFound
	}
	return o, nil
}

// GetPayment returns the payment of an order that the actor may read.
func (s *Service) GetPayment(ctx context.Context, a Actor, id domain.OrderID) (domain.PaymentState, error) {
	if err := a.allow(UseCaseGetPayment); err != nil {
		return domain.PaymentState{}, err
	}
	p, customer, err := s.reader.Payment(ctx, a.Tenant, id)
	if err != nil {
		return domain.PaymentState{}, notFoundAs(err, ErrOrderNotFound)
	}
	if !a.mayTouch(customer, UseCaseGetPayment) {
		return domain.PaymentState{}, ErrOrderNotFound
	}
	return p, nil
}

// ListOrders lists the actor's orders, newest first; with orders:admin, all orders of the tenant.
func (s *Service) ListOrders(
	ctx context.Context, a Actor, status domain.OrderStatus, after domain.OrderID, limit int,
) (Page[domain.OrderState], error) {
	if err := a.allow(UseCaseListOrders); err != nil {
		return Page[domain.OrderState]{}, err
	}
	q := OrderQuery{Tenant: a.Tenant, Customer: a.ID, Status: status, After: after, Limit: limit + 1}
	if a.Has(ScopeOrdersAdmin) {
		q.Customer = ""
	}
	items, err := s.reader.Orders(ctx, q)
	return page(items, limit), err
}

// GetProduct returns a product of the catalogue.
func (s *Service) GetProduct(ctx context.Context, a Actor, sku string) (domain.ProductState, error) {
	if err := a.allow(UseCaseGetProduct); err != nil {
		return domain.ProductState{}, err
	}
	p, err := s.reader.Product(ctx, a.Tenant, sku)
	return p, notFoundAs(err, ErrProductNotFound)
}

// ListProducts lists the catalogue by sku.
func (s *Service) ListProducts(
	ctx context.Context, a Actor, active *bool, after string, limit int,
) (Page[domain.ProductState], error) {
	if err := a.allow(UseCaseListProducts); err != nil {
		return Page[domain.ProductState]{}, err
	}
	items, err := s.reader.Products(ctx, ProductQuery{a.Tenant, active, after, limit + 1})
	return page(items, limit), err
}

// GetStock returns the units on hand of a product.
func (s *Service) GetStock(ctx context.Context, a Actor, sku string) (domain.StockState, error) {
	if err := a.allow(UseCaseGetStock); err != nil {
		return domain.StockState{}, err
	}
	k, err := s.reader.Stock(ctx, a.Tenant, sku)
	return k, notFoundAs(err, ErrProductNotFound)
}
