package app

import (
	"context"
	"errors"

	"example.com/orders/internal/domain"
)

var errProductExists = domain.Refuse(CodeProductExists, "There is a product with this sku already.")

// PutProductInput is the new state of a product.
type PutProductInput struct {
	SKU      string
	Details  domain.ProductDetails
	Create   bool     // create the product; fail if it exists
	Expected Expected // for an edit: the versions that the caller accepts
}

func (in PutProductInput) validate() error {
	var v domain.Violations
	if !domain.ValidSKU(in.SKU) {
		v.Add("sku", "pattern", "is not a sku")
	}
	in.Details.Check(&v)
	return v.Err()
}

// PutProduct conflicts with itself: without a version check, one editor's price would silently overwrite another's
// (lost update).
func (s *Service) PutProduct(ctx context.Context, a Actor, in PutProductInput) (domain.ProductState, error) {
	return run(ctx, s, Command[domain.ProductState]{
		UseCase:  UseCasePutProduct,
		Actor:    a,
		Target:   NoOrder(),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.ProductState, error) {
			if in.Create {
				return s.createProduct(ctx, tx, a, in)
			}
			return s.editProduct(ctx, tx, a, in)
		},
	})
}

func (s *Service) createProduct(ctx context.Context, tx Tx, a Actor, in PutProductInput) (domain.ProductState, error) {
	product := domain.NewProduct(a.Tenant, in.SKU, in.Details, tx.Now())
	if err := tx.Products().Add(ctx, product); err != nil {
		if errors.Is(err, ErrExists) {
			return domain.ProductState{}, errProductExists
		}
		return domain.ProductState{}, err
	}
	return product.State(), tx.Stock().Add(ctx, domain.NewStock(a.Tenant, in.SKU, tx.Now()))
}

func (s *Service) editProduct(ctx context.Context, tx Tx, a Actor, in PutProductInput) (domain.ProductState, error) {
	product, err := tx.Products().ForUpdate(ctx, a.Tenant, in.SKU)
	if err != nil {
		return domain.ProductState{}, notFoundAs(err, ErrProductNotFound)
	}
	if err := in.Expected.check(product.State().Version); err != nil {
		return domain.ProductState{}, err
	}
	product.Edit(in.Details, tx.Now())
	err = tx.Products().Save(ctx, product)
	return product.State(), err
}

// AdjustStockInput changes the units on hand of a sku. Its JSON is part of the canonical input of the fingerprint.
type AdjustStockInput struct {
	SKU    string `json:"-"` // part of the route
	Delta  int64  `json:"delta"`
	Reason string `json:"reason,omitzero"`
}

func (in AdjustStockInput) validate() error {
	var v domain.Violations
	if in.Delta == 0 || in.Delta < -domain.MaxDelta || in.Delta > domain.MaxDelta {
		v.Add("delta", "range", "must be -1000000 to 1000000 and not zero")
	}
	domain.CheckReason(&v, in.Reason)
	return v.Err()
}

// AdjustStock takes no version: deltas commute, so concurrent requests wait for the row lock and all of them are
// applied.
func (s *Service) AdjustStock(ctx context.Context, a Actor, k Keyed[domain.StockState], in AdjustStockInput) (Outcome, error) {
	return runKeyed(ctx, s, Command[domain.StockState]{
		UseCase:  UseCaseAdjustStock,
		Actor:    a,
		Target:   NoOrder(),
		Validate: in.validate,
		Handle: func(ctx context.Context, tx Tx) (domain.StockState, error) {
			stock, err := tx.Stock().ForUpdate(ctx, a.Tenant, []string{in.SKU})
			if err != nil {
				return domain.StockState{}, err
			}
			k, ok := stock[in.SKU]
			if !ok {
				return domain.StockState{}, ErrProductNotFound
			}
			if err := k.Adjust(in.Delta, tx.Now()); err != nil {
				return domain.StockState{}, err
			}
			err = tx.Stock().Save(ctx, []*domain.Stock{k})
			return k.State(), err
		},
		Keyed: k,
		Input: in,
	})
}
