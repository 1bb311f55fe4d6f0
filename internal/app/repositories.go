package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// The ports of this domain: its repositories, its outbox and its queries.
//
// Writes may be collected and sent later: their errors can come with a later call or with the commit.
//
// Every repository's Save compares the stored version with the loaded one and returns ErrStale when they differ. After
// a Save the aggregate has its new version. ForUpdate locks the row until the transaction ends. A use case that needs
// several locks takes them in the order Order, Payment, Stock by sku. A missing aggregate is ErrNotFound.

// Orders is the repository of orders.
type Orders interface {
	Add(ctx context.Context, o *domain.Order) error
	Customer(ctx context.Context, tenant string, id domain.OrderID) (string, error)
	ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, error)
	// WithPayment locks the order, then its payment.
	WithPayment(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, *domain.Payment, error)
	// AsSeen is WithPayment for a caller that has just read both. It locks them and expects both to be unchanged. If
	// one was changed, the transaction runs again, and AsSeen then reads both.
	AsSeen(ctx context.Context, seen Look) (*domain.Order, *domain.Payment, error)
	Save(ctx context.Context, o *domain.Order) error
}

// Payments is the repository of payments.
type Payments interface {
	Add(ctx context.Context, p *domain.Payment) error
	ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Payment, error)
	Save(ctx context.Context, p *domain.Payment) error
}

// Products is the repository of the catalogue.
type Products interface {
	// ForSale reads the products and locks their stock, in ascending order of sku. Both maps have the sku as key.
	ForSale(ctx context.Context, tenant string, skus []string) (
		map[string]domain.ProductState, map[string]*domain.Stock, error)
	// Add returns ErrExists where the sku is taken.
	Add(ctx context.Context, p *domain.Product) error
	ForUpdate(ctx context.Context, tenant, sku string) (*domain.Product, error)
	Save(ctx context.Context, p *domain.Product) error
}

// StockRepository is the repository of the stock.
type StockRepository interface {
	Add(ctx context.Context, k *domain.Stock) error
	// ForUpdate locks the stock of the skus in ascending order of sku and returns it by sku.
	ForUpdate(ctx context.Context, tenant string, skus []string) (map[string]*domain.Stock, error)
	Save(ctx context.Context, changed []*domain.Stock) error
}

// OrderRef identifies an order across tenants. A job carries only this.
type OrderRef struct {
	Tenant  string
	OrderID domain.OrderID
}

// Outbox enqueues jobs in the transaction of the change. They run after its commit (transactional outbox).
type Outbox interface {
	ChargeOrder(ctx context.Context, ref OrderRef) error
	RefundCharge(ctx context.Context, ref OrderRef, refund uuid.UUID) error
	// SettlePayment enqueues a job that retrieves the payment's objects from the provider, and the named intent if
	// there is one.
	SettlePayment(ctx context.Context, ref OrderRef, intentID string) error
	// SettlePaymentOnce is SettlePayment, unless such a job is already waiting: that job will read the current state.
	SettlePaymentOnce(ctx context.Context, ref OrderRef, intentID string) error
	// Orphans finds, at most limit, the charges and refunds that have been undecided since before and have no live job.
	Orphans(ctx context.Context, before time.Time, limit int) ([]Orphan, error)
}

// Orphan is an undecided charge or refund that has no live job.
type Orphan struct {
	Ref    OrderRef
	Refund uuid.UUID // zero: the charge
}

// Inbox stores the ids of received provider events.
type Inbox interface {
	// Add stores an event's id until expires. It returns false if the id is already stored.
	Add(ctx context.Context, e ProviderEvent, now, expires time.Time) (bool, error)
}

// UnmatchedCharge is a charge at the provider that belongs to no payment.
type UnmatchedCharge struct {
	Ref           OrderRef
	Intent        Intent
	Kind          FindingKind // FindingSecondCharge or FindingUnknownCharge
	KeyGeneration int         // of the provider's idempotency key of its refund
}

// UnmatchedCharges is the repository of unmatched charges. A row is added once and kept for ever, because it explains
// the refund. It is dropped if the order is restored before the refund.
type UnmatchedCharges interface {
	// Add stores a charge. It returns false if the charge is already stored.
	Add(ctx context.Context, c UnmatchedCharge, now time.Time) (bool, error)
	// Open lists, at most limit, the oldest ones that have not been returned: every second charge, and those of unknown
	// orders that were added before.
	Open(ctx context.Context, before time.Time, limit int) ([]UnmatchedCharge, error)
	// Returned stores the refund of the charge. It returns false if another run has stored it.
	Returned(ctx context.Context, c UnmatchedCharge, refundID string, now time.Time) (bool, error)
	// Drop deletes a charge that may belong to a payment after all.
	Drop(ctx context.Context, c UnmatchedCharge) error
	// NextKey makes the next attempt at the refund use another idempotency key.
	NextKey(ctx context.Context, c UnmatchedCharge) error
}

// Watermark is how far reconcile-payments has compared a provider stream.
type Watermark struct {
	Stream ProviderStream
	From   time.Time // everything that was created before has been compared; zero: nothing was
	Next   time.Time // what From becomes once the pages from After on have been compared; zero: no pass is under way
	After  string    // the last id of the last page that was compared
}

// Watermarks is the repository of watermarks.
type Watermarks interface {
	// Lock returns the watermark and locks its row until the transaction ends.
	Lock(ctx context.Context, stream ProviderStream) (Watermark, error)
	Save(ctx context.Context, w Watermark, now time.Time) error
}

// Reader runs queries. A missing row is ErrNotFound.
type Reader interface {
	Order(ctx context.Context, tenant string, id domain.OrderID) (domain.OrderState, error)
	Payment(ctx context.Context, tenant string, id domain.OrderID) (p domain.PaymentState, customer string, err error)
	// Look reads an order and its payment without a lock, so both may change right after.
	Look(ctx context.Context, ref OrderRef) (Look, error)
	// Orders lists newest first.
	Orders(ctx context.Context, q OrderQuery) ([]domain.OrderState, error)
	Product(ctx context.Context, tenant, sku string) (domain.ProductState, error)
	// Products lists by sku.
	Products(ctx context.Context, q ProductQuery) ([]domain.ProductState, error)
	Stock(ctx context.Context, tenant, sku string) (domain.StockState, error)
}

// Look is an order and its payment as they were at Now, the database's time.
type Look struct {
	Order   domain.OrderState
	Payment domain.PaymentState // without its refunds: a pending payment has none
	Now     time.Time
	ReadAt  time.Time // this process's time at that moment, to tell how long ago it was
}

// OrderQuery selects a page of orders.
type OrderQuery struct {
	Tenant   string
	Customer string             // empty: any
	Status   domain.OrderStatus // empty: any
	After    domain.OrderID     // zero: from the start
	Limit    int
}

// ProductQuery selects a page of the catalogue.
type ProductQuery struct {
	Tenant string
	Active *bool  // nil: any
	After  string // empty: from the start
	Limit  int
}
