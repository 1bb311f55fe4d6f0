package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/domain"
)

type orders struct{ tx pgx.Tx }

func (r orders) Add(ctx context.Context, o *domain.Order) error {
	s := o.State()
	a := s.Address
	batch := &pgx.Batch{}
	batch.Queue(`
		INSERT INTO orders (tenant_id, id, customer_id, status, total_amount, currency, ship_name, ship_line1,
			ship_line2, ship_city, ship_postal_code, ship_country, created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)`,
		s.Tenant, s.ID, s.Customer, s.Status, s.Total.Amount, s.Total.Currency, a.Name, a.Line1,
		a.Line2, a.City, a.PostalCode, a.Country, s.CreatedAt, s.UpdatedAt)
	for i, l := range s.Lines {
		batch.Queue(`
			INSERT INTO order_lines (tenant_id, order_id, line_no, sku, name, quantity, unit_amount)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			s.Tenant, s.ID, i, l.SKU, l.Name, l.Quantity, l.UnitPrice.Amount)
	}
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("add order: %w", err)
	}
	o.Stored(1)
	return nil
}

func (r orders) Customer(ctx context.Context, tenant string, id domain.OrderID) (customer string, err error) {
	err = r.tx.QueryRow(ctx, `SELECT customer_id FROM orders WHERE tenant_id = $1 AND id = $2`, tenant, id).Scan(&customer)
	return customer, notFound("customer of order", err)
}

func (r orders) ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, error) {
	rows, _ := r.tx.Query(ctx, selectOrder+` WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, id)
	s, err := pgx.CollectExactlyOneRow(rows, scanOrder)
	if err != nil {
		return nil, notFound("lock order", err)
	}
	if err := readLines(ctx, r.tx, tenant, []*domain.OrderState{&s}); err != nil {
		return nil, err
	}
	return domain.RestoreOrder(s), nil
}

// Save stores what can change of an order: lines, total and customer never do.
func (r orders) Save(ctx context.Context, o *domain.Order) error {
	s := o.State()
	a := s.Address
	var shipment domain.Shipment
	var cancellation domain.Cancellation
	if s.Shipment != nil {
		shipment = *s.Shipment
	}
	if s.Cancellation != nil {
		cancellation = *s.Cancellation
	}
	tag, err := r.tx.Exec(ctx, `
		UPDATE orders SET status = $4, ship_name = $5, ship_line1 = $6, ship_line2 = $7, ship_city = $8,
			ship_postal_code = $9, ship_country = $10, carrier = $11, tracking_number = $12, shipped_at = $13,
			cancellation_reason = $14, cancelled_at = $15, updated_at = $16, version = $3 + 1
		WHERE tenant_id = $1 AND id = $2 AND version = $3`,
		s.Tenant, s.ID, s.Version, s.Status, a.Name, a.Line1, a.Line2, a.City, a.PostalCode, a.Country,
		present(s.Shipment != nil, shipment.Carrier), present(s.Shipment != nil, shipment.TrackingNumber),
		present(s.Shipment != nil, shipment.ShippedAt), present(s.Cancellation != nil, cancellation.Reason),
		present(s.Cancellation != nil, cancellation.CancelledAt), s.UpdatedAt)
	if err := saved("order", tag, err); err != nil {
		return err
	}
	o.Stored(s.Version + 1)
	return nil
}

// present is a nullable parameter: v, or NULL where it is not there.
func present[T any](there bool, v T) *T {
	if !there {
		return nil
	}
	return &v
}

const selectOrder = `
SELECT tenant_id, id, customer_id, status, total_amount, currency, ship_name, ship_line1, ship_line2, ship_city,
	ship_postal_code, ship_country, carrier, tracking_number, shipped_at, cancellation_reason, cancelled_at,
	created_at, updated_at, version
FROM orders`

func scanOrder(row pgx.CollectableRow) (s domain.OrderState, err error) {
	var shipment nullableShipment
	var cancellation nullableCancellation
	a := &s.Address
	err = row.Scan(&s.Tenant, &s.ID, &s.Customer, &s.Status, &s.Total.Amount, &s.Total.Currency, &a.Name, &a.Line1,
		&a.Line2, &a.City, &a.PostalCode, &a.Country, &shipment.carrier, &shipment.tracking, &shipment.at,
		&cancellation.reason, &cancellation.at, &s.CreatedAt, &s.UpdatedAt, &s.Version)
	s.Shipment, s.Cancellation = shipment.value(), cancellation.value()
	s.CreatedAt, s.UpdatedAt = s.CreatedAt.UTC(), s.UpdatedAt.UTC()
	return s, err
}

// readLines adds the lines to orders of one tenant.
func readLines(ctx context.Context, db querier, tenant string, list []*domain.OrderState) error {
	byID := make(map[domain.OrderID]*domain.OrderState, len(list))
	ids := make([]domain.OrderID, 0, len(list))
	for _, s := range list {
		byID[s.ID] = s
		ids = append(ids, s.ID)
	}
	rows, _ := db.Query(ctx, `
		SELECT order_id, sku, name, quantity, unit_amount FROM order_lines
		WHERE tenant_id = $1 AND order_id = ANY($2) ORDER BY order_id, line_no`, tenant, ids)
	var id domain.OrderID
	var l domain.Line
	_, err := pgx.ForEachRow(rows, []any{&id, &l.SKU, &l.Name, &l.Quantity, &l.UnitPrice.Amount}, func() error {
		s := byID[id]
		l.UnitPrice.Currency = s.Total.Currency
		s.Lines = append(s.Lines, l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read order lines: %w", err)
	}
	return nil
}
