package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

type products struct{ tx pgx.Tx }

func (r products) BySKU(ctx context.Context, tenant string, skus []string) (map[string]domain.ProductState, error) {
	rows, _ := r.tx.Query(ctx, selectProduct+` WHERE tenant_id = $1 AND sku = ANY($2)`, tenant, skus)
	list, err := pgx.CollectRows(rows, scanProduct)
	if err != nil {
		return nil, fmt.Errorf("read products: %w", err)
	}
	bySKU := make(map[string]domain.ProductState, len(list))
	for _, s := range list {
		bySKU[s.SKU] = s
	}
	return bySKU, nil
}

func (r products) Add(ctx context.Context, p *domain.Product) error {
	s := p.State()
	tag, err := r.tx.Exec(ctx, `
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
	p.Stored(1)
	return nil
}

func (r products) ForUpdate(ctx context.Context, tenant, sku string) (*domain.Product, error) {
	rows, _ := r.tx.Query(ctx, selectProduct+` WHERE tenant_id = $1 AND sku = $2 FOR UPDATE`, tenant, sku)
	s, err := pgx.CollectExactlyOneRow(rows, scanProduct)
	if err != nil {
		return nil, notFound("lock product", err)
	}
	return domain.RestoreProduct(s), nil
}

func (r products) Save(ctx context.Context, p *domain.Product) error {
	s := p.State()
	tag, err := r.tx.Exec(ctx, `
		UPDATE products SET name = $4, price_amount = $5, price_currency = $6, active = $7, updated_at = $8, version = $3 + 1
		WHERE tenant_id = $1 AND sku = $2 AND version = $3`,
		s.Tenant, s.SKU, s.Version, s.Details.Name, s.Details.Price.Amount, s.Details.Price.Currency, s.Details.Active,
		s.UpdatedAt)
	if err := saved("product", tag, err); err != nil {
		return err
	}
	p.Stored(s.Version + 1)
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

type stock struct{ tx pgx.Tx }

func (r stock) Add(ctx context.Context, k *domain.Stock) error {
	s := k.State()
	_, err := r.tx.Exec(ctx, `
		INSERT INTO stock (tenant_id, sku, on_hand, updated_at, version) VALUES ($1, $2, $3, $4, 1)`,
		s.Tenant, s.SKU, s.OnHand, s.UpdatedAt)
	if err != nil {
		return fmt.Errorf("add stock: %w", err)
	}
	k.Stored(1)
	return nil
}

// ForUpdate locks in bytewise order of sku, whatever the database's collation, since that is how the domain sorts.
func (r stock) ForUpdate(ctx context.Context, tenant string, skus []string) (map[string]*domain.Stock, error) {
	rows, _ := r.tx.Query(ctx, selectStock+` WHERE tenant_id = $1 AND sku = ANY($2) ORDER BY sku COLLATE "C" FOR UPDATE`,
		tenant, skus)
	list, err := pgx.CollectRows(rows, scanStock)
	if err != nil {
		return nil, fmt.Errorf("lock stock: %w", err)
	}
	bySKU := make(map[string]*domain.Stock, len(list))
	for _, s := range list {
		bySKU[s.SKU] = domain.RestoreStock(s)
	}
	return bySKU, nil
}

// Save stores all of them in one round trip; one stale version fails all.
func (r stock) Save(ctx context.Context, changed []*domain.Stock) error {
	batch := &pgx.Batch{}
	for _, k := range changed {
		s := k.State()
		batch.Queue(`
			UPDATE stock SET on_hand = $4, updated_at = $5, version = $3 + 1
			WHERE tenant_id = $1 AND sku = $2 AND version = $3`, s.Tenant, s.SKU, s.Version, s.OnHand, s.UpdatedAt)
	}
	results := r.tx.SendBatch(ctx, batch)
	defer results.Close()
	for _, k := range changed {
		tag, err := results.Exec()
		if err := saved("stock", tag, err); err != nil {
			return err
		}
		k.Stored(k.State().Version + 1)
	}
	return results.Close()
}

const selectStock = `SELECT tenant_id, sku, on_hand, updated_at, version FROM stock`

func scanStock(row pgx.CollectableRow) (s domain.StockState, err error) {
	err = row.Scan(&s.Tenant, &s.SKU, &s.OnHand, &s.UpdatedAt, &s.Version)
	s.UpdatedAt = s.UpdatedAt.UTC()
	return s, err
}
