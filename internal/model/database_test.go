package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// The model knows two times: now, and past, which is more than a day ago: past every limit of the settings.
var (
	now  = time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	past = now.Add(-25 * time.Hour)
)

const (
	tenant, sku = "acme", "TEA"
	units       = 5 // on hand before the order
)

// job is one of the outbox. Equal jobs that wait are one: the second finds nothing left to do.
type job struct {
	kind   string
	refund uuid.UUID
	intent string
	owner  int     // the run that has it; 0: it waits
	told   *stripe // what the event said that asked for it; set only where events are trusted
}

func (j job) String() string {
	name := j.kind
	if j.refund != uuid.Nil {
		name += " " + short(j.refund)
	}
	if j.intent != "" {
		name += " " + j.intent
	}
	if j.told != nil {
		name += " told " + j.told.objects()
	}
	return name
}

// short is the number of a refund: its id is one that the model gave it.
func short(id uuid.UUID) string { return fmt.Sprintf("r%x", id[15]) }

// database is what has been committed.
type database struct {
	order     domain.OrderState
	payment   domain.PaymentState
	onHand    int64
	jobs      []job
	inbox     []string
	unmatched []app.UnmatchedCharge
	returned  []string // ids of intents among them
	compared  []string // the provider's objects, each in a state that reconcile-payments has compared
	ids       byte     // the last one given to a refund
}

func (d database) clone() database {
	d.jobs, d.inbox = slices.Clone(d.jobs), slices.Clone(d.inbox)
	d.unmatched, d.returned = slices.Clone(d.unmatched), slices.Clone(d.returned)
	d.payment.Refunds, d.compared = slices.Clone(d.payment.Refunds), slices.Clone(d.compared)
	return d
}

func (d *database) enqueue(j job) {
	waits := func(k job) bool { return k.owner == 0 && k.refund == j.refund && k.String() == j.String() }
	if !slices.ContainsFunc(d.jobs, waits) {
		d.jobs = append(d.jobs, j)
	}
}

// nameRefunds gives refunds that the service has made in this transaction ids that do not depend on chance.
func (d *database) nameRefunds() {
	for i, r := range d.payment.Refunds {
		if slices.Equal(r.ID[:15], make([]byte, 15)) {
			continue
		}
		d.ids++
		id := uuid.UUID{15: d.ids}
		d.payment.Refunds[i].ID = id
		for k := range d.jobs {
			if d.jobs[k].refund == r.ID {
				d.jobs[k].refund = id
			}
		}
	}
}

// age makes everything that is now past.
func (d *database) age() {
	for _, t := range []*time.Time{&d.payment.CreatedAt, &d.payment.UpdatedAt, &d.order.CreatedAt, &d.order.UpdatedAt} {
		*t = past
	}
	aged(&d.payment.Refusal.Since)
	for i := range d.payment.Refunds {
		r := &d.payment.Refunds[i]
		r.CreatedAt = past
		aged(&r.KeyFailedAt)
		aged(&r.Refusal.Since)
	}
}

func aged(t *time.Time) {
	if !t.IsZero() {
		*t = past
	}
}

// tx is one transaction on a copy of the database: the service's ports, all of them.
type tx struct {
	db     database
	find   func() (*app.KeyRecord, error) // nil: the key is free
	record *app.KeyRecord
	stale  *domain.OrderState // planted: the order as an earlier transaction of the run saw it, saved without a compare
	told   *stripe            // of the event that this transaction receives
}

func (*tx) Now() time.Time                    { return now }
func (t *tx) Orders() app.Orders              { return orders{t} }
func (t *tx) Payments() app.Payments          { return payments{t} }
func (t *tx) Products() app.Products          { return products{tx: t} }
func (t *tx) Stock() app.StockRepository      { return stock{tx: t} }
func (t *tx) Outbox() app.Outbox              { return outbox{t} }
func (t *tx) Inbox() app.Inbox                { return inbox{t} }
func (t *tx) Unmatched() app.UnmatchedCharges { return unmatched{tx: t} }
func (t *tx) Watermarks() app.Watermarks      { return watermarks{} }
func (t *tx) FindKey() (*app.KeyRecord, error) {
	if t.find == nil {
		return nil, nil //nolint:nilnil // what the port asks for
	}
	return t.find()
}

func (t *tx) CompleteKey(print app.Fingerprint, r app.Reply, _ time.Duration) {
	t.record = &app.KeyRecord{Fingerprint: print, Reply: r}
}

type orders struct{ tx *tx }

func (r orders) Add(_ context.Context, o *domain.Order) error {
	o.Stored(1)
	r.tx.db.order = o.State()
	return nil
}

func (r orders) Customer(context.Context, string, domain.OrderID) (string, error) {
	return r.tx.db.order.Customer, nil
}

func (r orders) ForUpdate(context.Context, string, domain.OrderID) (*domain.Order, error) {
	if r.tx.stale != nil {
		return domain.RestoreOrder(*r.tx.stale), nil
	}
	return domain.RestoreOrder(r.tx.db.order), nil
}

func (r orders) WithPayment(ctx context.Context, tenant string, id domain.OrderID) (
	*domain.Order, *domain.Payment, error,
) {
	order, _ := r.ForUpdate(ctx, tenant, id)
	payment, err := r.tx.Payments().ForUpdate(ctx, tenant, id)
	return order, payment, err
}

// AsSeen reads them: transactions of the model do not overlap.
func (r orders) AsSeen(ctx context.Context, seen app.Look) (*domain.Order, *domain.Payment, error) {
	return r.WithPayment(ctx, seen.Payment.Tenant, seen.Payment.OrderID)
}

func (r orders) Save(_ context.Context, o *domain.Order) error {
	if r.tx.stale == nil && o.State().Version != r.tx.db.order.Version {
		return app.ErrStale
	}
	o.Stored(r.tx.db.order.Version + 1)
	r.tx.db.order = o.State()
	return nil
}

type payments struct{ tx *tx }

func (r payments) Add(_ context.Context, p *domain.Payment) error {
	r.tx.db.payment = p.State()
	return nil
}

func (r payments) ForUpdate(context.Context, string, domain.OrderID) (*domain.Payment, error) {
	return domain.RestorePayment(r.tx.db.payment), nil
}

// Save leaves the payment's version alone: transactions of the model do not overlap, and a version would only tell
// apart states that are the same.
func (r payments) Save(_ context.Context, p *domain.Payment) error {
	r.tx.db.payment = p.State()
	return nil
}

type products struct {
	app.Products
	tx *tx
}

func (r products) ForSale(context.Context, string, []string) (
	map[string]domain.ProductState, map[string]*domain.Stock, error,
) {
	price := domain.Money{Amount: 1000, Currency: "EUR"}
	shelf, err := r.tx.Stock().ForUpdate(context.Background(), tenant, nil)
	return map[string]domain.ProductState{
		sku: {Tenant: tenant, SKU: sku, Details: domain.ProductDetails{Name: "Tea", Price: price, Active: true}},
	}, shelf, err
}

type stock struct {
	app.StockRepository
	tx *tx
}

func (r stock) ForUpdate(context.Context, string, []string) (map[string]*domain.Stock, error) {
	return map[string]*domain.Stock{
		sku: domain.RestoreStock(domain.StockState{Tenant: tenant, SKU: sku, OnHand: r.tx.db.onHand}),
	}, nil
}

func (r stock) Save(_ context.Context, changed []*domain.Stock) error {
	r.tx.db.onHand = changed[0].State().OnHand
	return nil
}

type outbox struct{ tx *tx }

func (r outbox) ChargeOrder(context.Context, app.OrderRef) error {
	r.tx.db.enqueue(job{kind: "charge-order"})
	return nil
}

func (r outbox) RefundCharge(_ context.Context, _ app.OrderRef, id uuid.UUID) error {
	r.tx.db.enqueue(job{kind: "refund-charge", refund: id})
	return nil
}

func (r outbox) SettlePayment(_ context.Context, _ app.OrderRef, intent string) error {
	r.tx.db.enqueue(job{kind: "settle-payment", intent: intent, told: r.tx.told})
	return nil
}

func (r outbox) SettlePaymentOnce(ctx context.Context, ref app.OrderRef, intent string) error {
	return r.SettlePayment(ctx, ref, intent)
}

func (r outbox) Orphans(_ context.Context, before time.Time, _ int) (list []app.Orphan, err error) {
	p, live := r.tx.db.payment, func(kind string, id uuid.UUID) bool {
		return slices.ContainsFunc(r.tx.db.jobs, func(j job) bool { return j.kind == kind && j.refund == id })
	}
	ref := app.OrderRef{Tenant: tenant, OrderID: p.OrderID}
	if p.Status == domain.PaymentPending && p.UpdatedAt.Before(before) && !live("charge-order", uuid.Nil) {
		list = append(list, app.Orphan{Ref: ref})
	}
	for _, f := range p.Refunds {
		if f.Status == domain.RefundPending && f.CreatedAt.Before(before) && !live("refund-charge", f.ID) {
			list = append(list, app.Orphan{Ref: ref, Refund: f.ID})
		}
	}
	return list, nil
}

type inbox struct{ tx *tx }

func (r inbox) Add(_ context.Context, e app.ProviderEvent, _, _ time.Time) (bool, error) {
	if slices.Contains(r.tx.db.inbox, e.ID) {
		return false, nil
	}
	r.tx.db.inbox = append(r.tx.db.inbox, e.ID)
	return true, nil
}

type unmatched struct {
	app.UnmatchedCharges
	tx *tx
}

func (r unmatched) Add(_ context.Context, c app.UnmatchedCharge, _ time.Time) (bool, error) {
	same := func(k app.UnmatchedCharge) bool { return k.Intent.ID == c.Intent.ID }
	if slices.ContainsFunc(r.tx.db.unmatched, same) {
		return false, nil
	}
	r.tx.db.unmatched = append(r.tx.db.unmatched, c)
	return true, nil
}

func (r unmatched) Open(context.Context, time.Time, int) (open []app.UnmatchedCharge, err error) {
	for _, c := range r.tx.db.unmatched {
		if !slices.Contains(r.tx.db.returned, c.Intent.ID) {
			open = append(open, c)
		}
	}
	return open, nil
}

func (r unmatched) Returned(_ context.Context, c app.UnmatchedCharge, _ string, _ time.Time) (bool, error) {
	if slices.Contains(r.tx.db.returned, c.Intent.ID) {
		return false, nil
	}
	r.tx.db.returned = append(r.tx.db.returned, c.Intent.ID)
	return true, nil
}

func (r unmatched) NextKey(_ context.Context, c app.UnmatchedCharge) error {
	for i := range r.tx.db.unmatched {
		if r.tx.db.unmatched[i].Intent.ID == c.Intent.ID {
			r.tx.db.unmatched[i].KeyGeneration = c.KeyGeneration + 1
		}
	}
	return nil
}

// watermarks are of no use to the model, see exec.List.
type watermarks struct{}

func (watermarks) Lock(_ context.Context, stream app.ProviderStream) (app.Watermark, error) {
	return app.Watermark{Stream: stream}, nil
}

func (watermarks) Save(context.Context, app.Watermark, time.Time) error { return nil }

// silent is a monitor that is told for nothing.
type silent struct{}

func (silent) Finding(context.Context, app.FindingKind, app.OrderRef, string) {}

// direct is a store whose transactions run at once, one after the other.
type direct struct{ tx *tx }

func (s direct) InTx(ctx context.Context, fn func(context.Context, app.Tx) error) error {
	before := s.tx.db.clone()
	err := fn(ctx, s.tx)
	if err != nil {
		s.tx.db = before
	}
	s.tx.db.nameRefunds()
	return err
}

func (s direct) InKeyedTx(ctx context.Context, _ app.KeyScope, fn func(context.Context, app.Tx) error) error {
	return s.InTx(ctx, fn)
}

var settings = app.Settings{
	KeyRetention: 24 * time.Hour, EventRetention: 24 * time.Hour, ProviderTimeout: time.Hour, ProviderLag: time.Minute,
	RefusalLimit: 24 * time.Hour,
}

var customer = app.Actor{Tenant: tenant, ID: "alice", Scopes: []string{app.ScopeOrdersWrite, app.ScopeOrdersRefund}}

// place places an order of some units, as the API does. The transaction keeps what it would commit.
func place(t *tx, quantity int64) (app.Outcome, error) {
	service := app.New(direct{t}, nil, nil, settings, silent{})
	return service.PlaceOrder(context.Background(), customer, app.Keyed[domain.OrderState]{
		Key: "k", Route: "POST /v1/orders",
		Render: func(o domain.OrderState) (app.Reply, error) { return app.Reply{Status: 201, Body: o.ID[:]}, nil },
	}, app.PlaceOrderInput{
		Currency: "EUR", Lines: []domain.Item{{SKU: sku, Quantity: quantity}}, PaymentMethod: "pm_card_visa",
		Address: domain.Address{Name: "A", Line1: "B", City: "C", PostalCode: "1", Country: "DE"},
	})
}

var errLost = errors.New("another run has the job")
