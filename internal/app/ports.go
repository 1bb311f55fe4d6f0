package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// Store runs work in transactions.
type Store interface {
	// InTx runs fn in one transaction and commits it when fn returns nil. On a serialization failure or a deadlock
	// the whole transaction runs again, a bounded number of times, so fn must not keep anything from an earlier run.
	// It returns ErrTryAgain when nothing was applied and ErrOutcomeUnknown when nobody can tell.
	InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error

	// InKeyedTx is InTx for a command with a client key. While another request has the key, it waits without holding
	// a connection, for as long as the setting allows, and then returns ErrKeyInProgress.
	InKeyedTx(ctx context.Context, scope KeyScope, fn func(ctx context.Context, tx Tx) error) error
}

// Tx is what can be done inside one transaction.
type Tx interface {
	Orders() Orders
	Payments() Payments
	Products() Products
	Stock() StockRepository
	Outbox() Outbox

	// ClaimKey claims the key for this transaction and returns nil, or returns the completed record of the winner.
	// The claim expires after keep, and an expired record is replaced: both by the store's clock, since a process whose
	// clock is wrong must not take a live key.
	ClaimKey(ctx context.Context, scope KeyScope, print Fingerprint, keep time.Duration) (*KeyRecord, error)
	// CompleteKey stores the reply under the key that this transaction has claimed.
	CompleteKey(ctx context.Context, scope KeyScope, reply Reply) error
}

// KeyScope is the identity of a client key.
type KeyScope struct {
	Tenant    string
	Actor     string
	Operation string
	Key       string
}

// KeyRecord is a completed key.
type KeyRecord struct {
	Fingerprint Fingerprint
	Reply       Reply
}

// Every repository's Save compares the stored version with the loaded one and returns ErrStale when they differ; the
// aggregate then has its new version. ForUpdate locks the row until the transaction ends. A use case that needs
// several locks takes them in the order Order, Payment, Stock by sku. What is missing is ErrNotFound.

// Orders is the repository of orders.
type Orders interface {
	Add(ctx context.Context, o *domain.Order) error
	Customer(ctx context.Context, tenant string, id domain.OrderID) (string, error)
	ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Order, error)
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
	BySKU(ctx context.Context, tenant string, skus []string) (map[string]domain.ProductState, error)
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
	// Orphans finds, at most limit, the charges and refunds that have had no outcome since before and no live job.
	Orphans(ctx context.Context, before time.Time, limit int) ([]Orphan, error)
}

// Completion marks the job at work as completed in the transaction that records its result.
type Completion func(ctx context.Context, tx Tx) error

// Reader answers queries. What is missing is ErrNotFound.
type Reader interface {
	Order(ctx context.Context, tenant string, id domain.OrderID) (domain.OrderState, error)
	Payment(ctx context.Context, tenant string, id domain.OrderID) (p domain.PaymentState, customer string, err error)
	// Orders lists newest first.
	Orders(ctx context.Context, q OrderQuery) ([]domain.OrderState, error)
	Product(ctx context.Context, tenant, sku string) (domain.ProductState, error)
	// Products lists by sku.
	Products(ctx context.Context, q ProductQuery) ([]domain.ProductState, error)
	Stock(ctx context.Context, tenant, sku string) (domain.StockState, error)
}

// OrderQuery selects a page of orders.
type OrderQuery struct {
	Tenant   string
	Customer string             // empty: anybody's
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
