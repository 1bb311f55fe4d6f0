package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

type products struct{ s *Session }

func (r products) Add(ctx context.Context, p *domain.Product) error {
	s := p.State()
	tag, err := r.s.Immediate().Exec(ctx, `
		INSERT INTO products (tenant_id, sku, name, price_amount, price_currency, active, created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)
		ON CONFLICT (tenant_id, sku) DO NOTHING`,
		s.Tenant, s.SKU, s.Details.Name, s.Details.Price.Amount, s.Details.Price.Currency, s.Details.Active,
		s.CreatedAt, s.UpdatedAt)
	if err != nil {
		return fmt.Errorf("add product: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("add product: %w", app.ErrExists)
	}
	r.s.advance(p, 0)
	return nil
}

func (r products) ForUpdate(ctx context.Context, tenant, sku string) (*domain.Product, error) {
	var s domain.ProductState
	r.s.read("lock product", selectProduct+` WHERE tenant_id = $1 AND sku = $2 FOR UPDATE`, one(&s, scanProduct), tenant, sku)
	if err := r.s.flush(ctx); err != nil {
		return nil, notFound(err)
	}
	return domain.RestoreProduct(s), nil
}

// ForSale reads products and locks their stock, in one round trip. Each sku has a statement of its own, because
// PostgreSQL caches that plan. It would plan sku = ANY again for each order, which takes four times as long as the
// execution.
func (r products) ForSale(
	ctx context.Context, tenant string, skus []string,
) (map[string]domain.ProductState, map[string]*domain.Stock, error) {
	catalogue := make(map[string]domain.ProductState, len(skus))
	for _, sku := range skus {
		r.s.read("read product", selectProduct+` WHERE tenant_id = $1 AND sku = $2`,
			each(scanProduct, func(s domain.ProductState) { catalogue[sku] = s }), tenant, sku)
	}
	shelf, err := stock(r).ForUpdate(ctx, tenant, skus)
	return catalogue, shelf, err
}

func (r products) Save(_ context.Context, p *domain.Product) error {
	s := p.State()
	r.s.writeOne(statement{name: "save product", missed: app.ErrStale}, `
		UPDATE products SET name = $4, price_amount = $5, price_currency = $6, active = $7, updated_at = $8, version = $3 + 1
		WHERE tenant_id = $1 AND sku = $2 AND version = $3`,
		s.Tenant, s.SKU, s.Version, s.Details.Name, s.Details.Price.Amount, s.Details.Price.Currency, s.Details.Active,
		s.UpdatedAt)
	r.s.advance(p, s.Version)
	return nil
}

const selectProduct = `
SELECT tenant_id, sku, name, price_amount, price_currency, active, created_at, updated_at, version
FROM products`

func scanProduct(row pgx.CollectableRow) (s domain.ProductState, err error) {
	d := &s.Details
	err = row.Scan(&s.Tenant, &s.SKU, &d.Name, &d.Price.Amount, &d.Price.Currency, &d.Active, &s.CreatedAt, &s.UpdatedAt,
		&s.Version)
	s.CreatedAt, s.UpdatedAt = s.CreatedAt.UTC(), s.UpdatedAt.UTC()
	return s, err
}

type stock struct{ s *Session }

func (r stock) Add(_ context.Context, k *domain.Stock) error {
	s := k.State()
	r.s.Write("add stock", `
		INSERT INTO stock (tenant_id, sku, on_hand, updated_at, version) VALUES ($1, $2, $3, $4, 1)`,
		s.Tenant, s.SKU, s.OnHand, s.UpdatedAt)
	r.s.advance(k, 0)
	return nil
}

// ForUpdate locks in ascending order of sku, bytewise: PostgreSQL runs the statements of a batch one after the other.
func (r stock) ForUpdate(ctx context.Context, tenant string, skus []string) (map[string]*domain.Stock, error) {
	shelf := make(map[string]*domain.Stock, len(skus))
	for _, sku := range slices.Sorted(slices.Values(skus)) {
		r.s.read("lock stock", selectStock+` WHERE tenant_id = $1 AND sku = $2 FOR UPDATE`,
			each(scanStock, func(s domain.StockState) { shelf[sku] = domain.RestoreStock(s) }), tenant, sku)
	}
	return shelf, r.s.flush(ctx)
}

// Save stores all products; one stale version fails the transaction.
func (r stock) Save(_ context.Context, changed []*domain.Stock) error {
	for _, k := range changed {
		s := k.State()
		r.s.writeOne(statement{name: "save stock", missed: app.ErrStale}, `
			UPDATE stock SET on_hand = $4, updated_at = $5, version = $3 + 1
			WHERE tenant_id = $1 AND sku = $2 AND version = $3`, s.Tenant, s.SKU, s.Version, s.OnHand, s.UpdatedAt)
		r.s.advance(k, s.Version)
	}
	return nil
}

const selectStock = `SELECT tenant_id, sku, on_hand, updated_at, version FROM stock`

func scanStock(row pgx.CollectableRow) (s domain.StockState, err error) {
	err = row.Scan(&s.Tenant, &s.SKU, &s.OnHand, &s.UpdatedAt, &s.Version)
	s.UpdatedAt = s.UpdatedAt.UTC()
	return s, err
}
