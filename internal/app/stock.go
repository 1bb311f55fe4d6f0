package app

import (
	"context"
	"fmt"
	"time"

	"example.com/orders/internal/domain"
)

// moveStock reserves or returns the units that an order sold, on rows locked in ascending order of sku.
func (s *Service) moveStock(
	ctx context.Context, tx Tx, o domain.OrderState, move func(*domain.Stock, int64, time.Time) error,
) error {
	sold := o.Sold()
	stock, err := tx.Stock().ForUpdate(ctx, o.Tenant, skus(sold))
	if err != nil {
		return err
	}
	changed := make([]*domain.Stock, 0, len(sold))
	for _, l := range sold {
		k, ok := stock[l.SKU]
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
