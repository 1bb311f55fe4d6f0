package app

import (
	"context"
	"fmt"
	"time"

	"example.com/orders/internal/domain"
)

// returnStock returns the units of a cancelled order to stock. It locks the rows in ascending order of sku.
func returnStock(ctx context.Context, tx Tx, o domain.OrderState) error {
	shelf, err := tx.Stock().ForUpdate(ctx, o.Tenant, skus(o.Sold()))
	if err != nil {
		return err
	}
	return moveStock(ctx, tx, o, shelf, (*domain.Stock).Return)
}

// moveStock reserves or returns the units of an order, on locked rows.
func moveStock(
	ctx context.Context, tx Tx, o domain.OrderState, shelf map[string]*domain.Stock,
	move func(*domain.Stock, int64, time.Time) error,
) error {
	sold := o.Sold()
	changed := make([]*domain.Stock, 0, len(sold))
	for _, l := range sold {
		k, ok := shelf[l.SKU]
		if !ok {
			return fmt.Errorf("stock of %s: %w", l.SKU, ErrNotFound)
		}
		if err := move(k, l.Quantity, tx.Now()); err != nil {
			return err
		}
		changed = append(changed, k)
	}
	return tx.Stock().Save(ctx, changed)
}
