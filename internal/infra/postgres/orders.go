package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

type orders struct{ s *Session }

func (r orders) Add(_ context.Context, o *domain.Order) error {
	s := o.State()
	a := s.Address
	r.s.Write("add order", `
		INSERT INTO orders (tenant_id, id, customer_id, status, total_amount, currency, ship_name, ship_line1,
			ship_line2, ship_city, ship_postal_code, ship_country, created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)`,
		s.Tenant, s.ID, s.Customer, s.Status, s.Total.Amount, s.Total.Currency, a.Name, a.Line1,
		a.Line2, a.City, a.PostalCode, a.Country, s.CreatedAt, s.UpdatedAt)
	skus, names := make([]string, len(s.Lines)), make([]string, len(s.Lines))
	quantities, prices := make([]int64, len(s.Lines)), make([]int64, len(s.Lines))
	for i, l := range s.Lines {
		skus[i], names[i], quantities[i], prices[i] = l.SKU, l.Name, l.Quantity, l.UnitPrice.Amount
	}
	r.s.Write("add order lines", `
		INSERT INTO order_lines (tenant_id, order_id, line_no, sku, name, quantity, unit_amount)
		SELECT $1, $2, l.no - 1, l.sku, l.name, l.quantity, l.price
		FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[]) WITH ORDINALITY AS l (sku, name, quantity, price, no)`,
		s.Tenant, s.ID, skus, names, quantities, prices)
	r.s.advance(o, 0)
	return nil
}

func (r orders) Customer(ctx context.Context, tenant string, id domain.OrderID) (customer string, err error) {
	r.s.look("read customer of order", `SELECT customer_id FROM orders WHERE tenant_id = $1 AND id = $2`, into(&customer), tenant, id)
	return customer, notFound(r.s.flush(ctx))
}

func (r orders) ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, error) {
	order := r.lock(tenant, id)
	if err := r.s.flush(ctx); err != nil {
		return nil, notFound(err)
	}
	return order(), nil
}

// WithPayment locks both in one round trip. PostgreSQL runs the statements in order, so the order is locked first.
func (r orders) WithPayment(
	ctx context.Context, tenant string, id domain.OrderID,
) (*domain.Order, *domain.Payment, error) {
	order, payment := r.lock(tenant, id), payments(r).lock(tenant, id)
	if err := r.s.flush(ctx); err != nil {
		return nil, nil, notFound(err)
	}
	return order(), payment(), nil
}

// lock collects the statements that lock an order and read its lines, which never change. It returns what gives the order
// once they have been sent.
func (r orders) lock(tenant string, id domain.OrderID) func() *domain.Order {
	var s domain.OrderState
	var lines []domain.Line
	r.s.read("lock order", selectOrder+` WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, one(&s, scanOrder), tenant, id)
	r.s.read("read order lines", selectLines, all(&lines, scanLine), tenant, id)
	return func() *domain.Order {
		addLines(&s, lines)
		return domain.RestoreOrder(s)
	}
}

// AsSeen locks both where they still have the versions that were seen. Its statement goes with the next read, or with
// COMMIT. CASE makes PostgreSQL lock in the order of WithPayment.
func (r orders) AsSeen(ctx context.Context, seen app.Look) (*domain.Order, *domain.Payment, error) {
	o, p := seen.Order, seen.Payment
	if r.s.again || o.Version == 0 || p.Status != domain.PaymentPending {
		return r.WithPayment(ctx, p.Tenant, p.OrderID)
	}
	r.s.now = seen.Now.Add(time.Since(seen.ReadAt))
	r.s.must(statement{name: "lock order and payment as seen", missed: app.ErrStale}, `CASE
		WHEN EXISTS (SELECT FROM orders WHERE tenant_id = $1 AND (id, version) = ($2, $3) FOR UPDATE)
		THEN EXISTS (SELECT FROM payments WHERE tenant_id = $1 AND (order_id, version) = ($2, $4) FOR UPDATE)
		ELSE false END`, o.Tenant, o.ID, o.Version, p.Version)
	return domain.RestoreOrder(o), domain.RestorePayment(p), nil
}

// Save stores the mutable fields of an order. Lines, total and customer never change.
func (r orders) Save(_ context.Context, o *domain.Order) error {
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
	r.s.writeOne(statement{name: "save order", missed: app.ErrStale}, `
		UPDATE orders SET status = $4, ship_name = $5, ship_line1 = $6, ship_line2 = $7, ship_city = $8,
			ship_postal_code = $9, ship_country = $10, carrier = $11, tracking_number = $12, shipped_at = $13,
			cancellation_reason = $14, cancelled_at = $15, updated_at = $16, version = $3 + 1
		WHERE tenant_id = $1 AND id = $2 AND version = $3`,
		s.Tenant, s.ID, s.Version, s.Status, a.Name, a.Line1, a.Line2, a.City, a.PostalCode, a.Country,
		present(s.Shipment != nil, shipment.Carrier), present(s.Shipment != nil, shipment.TrackingNumber),
		present(s.Shipment != nil, shipment.ShippedAt), present(s.Cancellation != nil, cancellation.Reason),
		present(s.Cancellation != nil, cancellation.CancelledAt), s.UpdatedAt)
	r.s.advance(o, s.Version)
	return nil
}

// present returns v as a nullable parameter: NULL if v is absent.
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

const selectLines = `
SELECT sku, name, quantity, unit_amount FROM order_lines WHERE tenant_id = $1 AND order_id = $2 ORDER BY line_no`

func scanLine(row pgx.CollectableRow) (l domain.Line, err error) {
	err = row.Scan(&l.SKU, &l.Name, &l.Quantity, &l.UnitPrice.Amount)
	return l, err
}

// addLines adds its lines, in its currency, to an order.
func addLines(s *domain.OrderState, lines []domain.Line) {
	for _, l := range lines {
		l.UnitPrice.Currency = s.Total.Currency
		s.Lines = append(s.Lines, l)
	}
}
