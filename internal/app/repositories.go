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
// Every repository's Save compares the stored version with the loaded one and returns ErrStale when they differ; the
// aggregate then has its new version. ForUpdate locks the row until the transaction ends. A use case that needs
// several locks takes them in the order Order, Payment, Stock by sku. What is missing is ErrNotFound.

// Orders is the repository of orders.
type Orders interface {
	Add(ctx context.Context, o *domain.Order) error
	Customer(ctx context.Context, tenant string, id domain.OrderID) (string, error)
	ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, error)
	// WithPayment locks the order, then its payment.
	WithPayment(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, *domain.Payment, error)
	// AsSeen is WithPayment for a caller that has just read both: it locks them and expects that neither was changed since.
	// Where one was, the transaction runs again, and AsSeen then reads them.
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
	// ForSale reads the products and locks their stock, in ascending order of sku; both by sku.
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

// OrderRef names an order across tenants: all that a job carries.
type OrderRef struct {
	Tenant  string
	OrderID domain.OrderID
}

// Outbox notes, in the transaction of the change, work that must happen after its commit.
type Outbox interface {
	ChargeOrder(ctx context.Context, ref OrderRef) error
	RefundCharge(ctx context.Context, ref OrderRef, refund uuid.UUID) error
	// SettlePayment asks for a look at the payment's objects at the provider, and at the intent where one is named.
	SettlePayment(ctx context.Context, ref OrderRef, intentID string) error
	// SettlePaymentOnce is SettlePayment, unless such a job waits already: it will see all that there is to see now.
	SettlePaymentOnce(ctx context.Context, ref OrderRef, intentID string) error
	// Orphans finds, at most limit, the charges and refunds that have been undecided since before and have no live job.
	Orphans(ctx context.Context, before time.Time, limit int) ([]Orphan, error)
}

// Orphan is a payment or a refund that the provider has not decided and for which no job is alive.
type Orphan struct {
	Ref    OrderRef
	Refund uuid.UUID // zero: the charge
}

// Inbox is the ids of the provider events that were received.
type Inbox interface {
	// Add keeps an event's id until expires. False: it is kept already.
	Add(ctx context.Context, e ProviderEvent, now, expires time.Time) (bool, error)
}

// UnmatchedCharge is money that the provider holds and that no payment accounts for.
type UnmatchedCharge struct {
	Ref           OrderRef
	Intent        Intent
	Kind          FindingKind // FindingSecondCharge or FindingUnknownCharge
	KeyGeneration int         // of the provider's idempotency key of its refund
}

// UnmatchedCharges is the repository of unmatched charges. A row is added once and kept for good, as the explanation of
// the refund, unless its order comes back before there is one.
type UnmatchedCharges interface {
	// Add notes a charge. It tells false where it had been noted before.
	Add(ctx context.Context, c UnmatchedCharge, now time.Time) (bool, error)
	// Open lists, at most limit, the oldest ones that have not been returned: every second charge, and those of unknown
	// orders that were added before.
	Open(ctx context.Context, before time.Time, limit int) ([]UnmatchedCharge, error)
	// Returned notes the refund that gave the money back. It tells false where another run has noted it.
	Returned(ctx context.Context, c UnmatchedCharge, refundID string, now time.Time) (bool, error)
	// Drop forgets a charge that a payment may account for after all.
	Drop(ctx context.Context, c UnmatchedCharge) error
	// NextKey makes the next attempt at the refund use another idempotency key.
	NextKey(ctx context.Context, c UnmatchedCharge) error
}

// Watermark tells how far reconcile-payments has compared a stream of the provider.
type Watermark struct {
	Stream ProviderStream
	From   time.Time // everything that was created before has been compared; zero: nothing was
	Next   time.Time // what From becomes once the pages from After on have been compared; zero: no pass is under way
	After  string    // the last id of the last page that was compared
}

// Watermarks is the repository of watermarks.
type Watermarks interface {
	// Lock returns the watermark and keeps other runs of reconcile-payments from it until the transaction ends.
	Lock(ctx context.Context, stream ProviderStream) (Watermark, error)
	Save(ctx context.Context, w Watermark, now time.Time) error
}

// Reader answers queries. What is missing is ErrNotFound.
type Reader interface {
	Order(ctx context.Context, tenant string, id domain.OrderID) (domain.OrderState, error)
	Payment(ctx context.Context, tenant string, id domain.OrderID) (p domain.PaymentState, customer string, err error)
	// Look reads what a charge has to know of an order, without a lock: it may be old at once.
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
