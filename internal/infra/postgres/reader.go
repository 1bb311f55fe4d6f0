package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// Reader runs the application's queries. A query of several statements reads one snapshot.
type Reader struct {
	store *Store
	pool  *pgxpool.Pool
}

// NewReader makes a Reader that acquires connections as the store does.
func NewReader(s *Store) *Reader { return &Reader{store: s, pool: s.pool} }

// read runs fn, and a second time if a migration has changed the result type of a cached plan.
func (r *Reader) read(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	err := r.once(ctx, fn)
	if sqlState(err) == planChanged {
		r.store.forgetPlans(err)
		err = r.once(ctx, fn)
	}
	return classify(err)
}

// once runs fn on a connection, which it waits for as long as a transaction would.
func (r *Reader) once(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	conn, err := r.store.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return fn(conn)
}

// snapshot sends several queries in one round trip; they see the same snapshot.
func (r *Reader) snapshot(ctx context.Context, queue func(s *Session)) error {
	return r.read(ctx, func(conn *pgxpool.Conn) error {
		s := newSession(conn)
		s.Write("begin", "begin isolation level repeatable read, read only")
		for _, limit := range r.store.settings.atBegin {
			s.Write("begin", limit)
		}
		queue(s)
		s.Write("commit", "commit")
		err := s.flush(ctx)
		if err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
		}
		return err
	})
}

// Order implements app.Reader.
func (r *Reader) Order(ctx context.Context, tenant string, id domain.OrderID) (domain.OrderState, error) {
	var o domain.OrderState
	var lines []domain.Line
	err := r.snapshot(ctx, func(s *Session) {
		s.read("read order", selectOrder+` WHERE tenant_id = $1 AND id = $2`, one(&o, scanOrder), tenant, id)
		s.read("read order lines", selectLines, all(&lines, scanLine), tenant, id)
	})
	if err != nil {
		return domain.OrderState{}, notFound(err)
	}
	addLines(&o, lines)
	return o, nil
}

// Payment implements app.Reader.
func (r *Reader) Payment(
	ctx context.Context, tenant string, id domain.OrderID,
) (p domain.PaymentState, customer string, err error) {
	err = r.snapshot(ctx, func(s *Session) {
		s.read("read payment", selectPayment+` WHERE tenant_id = $1 AND order_id = $2`, one(&p, scanPayment), tenant, id)
		s.read("read customer of order", `SELECT customer_id FROM orders WHERE tenant_id = $1 AND id = $2`, into(&customer), tenant, id)
		s.read("read refunds", selectRefunds, all(&p.Refunds, scanRefund), tenant, id)
	})
	inCurrency(&p)
	return p, customer, notFound(err)
}

// Look implements app.Reader, in one round trip.
func (r *Reader) Look(ctx context.Context, ref app.OrderRef) (l app.Look, err error) {
	var lines []domain.Line
	err = r.read(ctx, func(conn *pgxpool.Conn) error {
		s := newSession(conn)
		s.look("read payment", `SELECT `+paymentColumns+`, now() FROM payments WHERE tenant_id = $1 AND order_id = $2`,
			one(&l.Payment, func(row pgx.CollectableRow) (domain.PaymentState, error) { return scanPaymentWith(row, &l.Now) }),
			ref.Tenant, ref.OrderID)
		s.look("read order", selectOrder+` WHERE tenant_id = $1 AND id = $2`, one(&l.Order, scanOrder), ref.Tenant, ref.OrderID)
		s.look("read order lines", selectLines, all(&lines, scanLine), ref.Tenant, ref.OrderID)
		return notFound(s.flush(ctx))
	})
	addLines(&l.Order, lines)
	l.Now, l.ReadAt = l.Now.UTC(), time.Now()
	return l, err
}

// Orders implements app.Reader. Ids of version 7 sort by time, so their order is the order of placing, and it is
// stable: a new order never moves an old one to another page.
func (r *Reader) Orders(ctx context.Context, q app.OrderQuery) (list []domain.OrderState, err error) {
	where, args := ` WHERE tenant_id = $1 AND ($2::text = '' OR status = $2)`, []any{q.Tenant, string(q.Status), q.Limit}
	if q.Customer != "" {
		args = append(args, q.Customer)
		where += fmt.Sprintf(` AND customer_id = $%d`, len(args))
	}
	if q.After != uuid.Nil {
		args = append(args, q.After)
		where += fmt.Sprintf(` AND id < $%d`, len(args))
	}
	err = r.read(ctx, func(conn *pgxpool.Conn) error {
		rows, _ := conn.Query(ctx, selectOrder+where+` ORDER BY id DESC LIMIT $3`, args...)
		list, err = pgx.CollectRows(rows, scanOrder)
		return err
	})
	return list, err
}

// Product implements app.Reader.
func (r *Reader) Product(ctx context.Context, tenant, sku string) (s domain.ProductState, err error) {
	err = r.read(ctx, func(conn *pgxpool.Conn) error {
		rows, _ := conn.Query(ctx, selectProduct+` WHERE tenant_id = $1 AND sku = $2`, tenant, sku)
		s, err = pgx.CollectExactlyOneRow(rows, scanProduct)
		return notFound(err)
	})
	return s, err
}

// Products implements app.Reader.
func (r *Reader) Products(ctx context.Context, q app.ProductQuery) (list []domain.ProductState, err error) {
	err = r.read(ctx, func(conn *pgxpool.Conn) error {
		rows, _ := conn.Query(ctx, selectProduct+`
			WHERE tenant_id = $1 AND sku COLLATE "C" > $2 AND ($3::boolean IS NULL OR active = $3)
			ORDER BY sku COLLATE "C" LIMIT $4`, q.Tenant, q.After, q.Active, q.Limit)
		list, err = pgx.CollectRows(rows, scanProduct)
		return err
	})
	return list, err
}

// Stock implements app.Reader.
func (r *Reader) Stock(ctx context.Context, tenant, sku string) (s domain.StockState, err error) {
	err = r.read(ctx, func(conn *pgxpool.Conn) error {
		rows, _ := conn.Query(ctx, selectStock+` WHERE tenant_id = $1 AND sku = $2`, tenant, sku)
		s, err = pgx.CollectExactlyOneRow(rows, scanStock)
		return notFound(err)
	})
	return s, err
}
