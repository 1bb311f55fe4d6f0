package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// PaymentProvider is the payment provider, Stripe, as the use cases see it.
//
// A nil error means that the id, amount, currency and metadata of the answer match the request. The errors below are
// those that use cases handle differently. Any other error means that the outcome is unknown: the caller learns it by
// retrieving the object.
type PaymentProvider interface {
	// CreateIntent creates an unconfirmed PaymentIntent. It moves no money.
	CreateIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// ConfirmIntent confirms the intent: this is the call that charges. The provider refuses a second confirmation.
	ConfirmIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// CancelIntent cancels the intent, unless it has succeeded or is processing.
	CancelIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// RetrieveIntent reads the intent by its id. It does not lag behind writes. A zero amount in the request matches
	// any amount.
	RetrieveIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// SearchIntents finds every intent of the order by its metadata. It lags behind writes, by a minute or more.
	SearchIntents(ctx context.Context, r IntentRequest) ([]Intent, error)

	// CreateRefund refunds a part of a succeeded intent.
	CreateRefund(ctx context.Context, r RefundRequest) (ProviderRefund, error)
	// ListRefunds lists every refund of an intent. It does not lag behind writes.
	ListRefunds(ctx context.Context, r IntentRequest) ([]ProviderRefund, error)

	// List returns one page of a stream: the provider's objects that were created since From.
	List(ctx context.Context, q ProviderQuery) (ProviderPage, error)
}

// The errors of a failed call that use cases handle differently.
var (
	// ErrProviderPaused means that the circuit breaker is open: the provider was not called, so nothing happened.
	ErrProviderPaused = errors.New("provider is failing and was not called")
	// ErrKeyUnusable means that a retry under the same idempotency key cannot succeed: the provider answered 5xx, which
	// it may have saved under the key, or 400 idempotency_error. The next attempt needs the next generation of the key.
	ErrKeyUnusable = errors.New("provider key is not usable any more")
	// ErrMismatch means that the answer's object, amount or currency differs from the request.
	ErrMismatch = errors.New("provider's answer is not about what was asked")
)

// RateLimitedError is the provider's 429.
type RateLimitedError struct{ After time.Duration } // zero: the provider did not say how long to wait

func (e *RateLimitedError) Error() string { return fmt.Sprintf("provider asks to wait %s", e.After) }

// RefusedError is a definite refusal by the provider (400, 402 or 404): this attempt did nothing. The provider may have
// saved it under the key, so that a later attempt needs the next generation of the key.
type RefusedError struct {
	Code string // "type/code/decline_code", each as the provider sends it, bounded; for rows and logs
	// Final is true when the refusal is permanent for this charge or refund (the charge is already refunded, or
	// disputed). False: the cause can be a configuration mistake in the provider account.
	Final bool
}

func (e *RefusedError) Error() string { return "provider refused: " + e.Code }

// IntentStatus is the status of a PaymentIntent, in Stripe's words.
type IntentStatus string

// The statuses of a PaymentIntent.
const (
	IntentRequiresPaymentMethod IntentStatus = "requires_payment_method" // after a confirmation: declined
	IntentRequiresConfirmation  IntentStatus = "requires_confirmation"
	IntentRequiresAction        IntentStatus = "requires_action"
	IntentProcessing            IntentStatus = "processing"
	IntentSucceeded             IntentStatus = "succeeded"
	IntentCanceled              IntentStatus = "canceled"
)

// IntentRequest identifies one intent of an order, with the values that the answer must have.
type IntentRequest struct {
	Ref           OrderRef
	IntentID      string // empty: not known yet
	Amount        domain.Money
	PaymentMethod string
	Generation    int // of the idempotency key: 1 at first, one more after each ErrKeyUnusable
}

// Intent is the provider's state of a PaymentIntent.
type Intent struct {
	ID        string
	Status    IntentStatus
	Amount    domain.Money
	LastError string // the provider's codes of the last failed attempt, bounded; empty: none
}

// RefundRequest identifies one refund of an order, with the values that the answer must have.
type RefundRequest struct {
	Ref        OrderRef
	RefundID   uuid.UUID
	IntentID   string
	Amount     domain.Money
	Generation int // of the idempotency key; 0: the key of the previous release, which has no tenant
}

// ProviderRefund is the provider's state of a refund.
type ProviderRefund struct {
	ID       string
	RefundID uuid.UUID // from its metadata; zero: this service did not ask for it
	IntentID string
	Amount   domain.Money
	Status   domain.RefundStatus
	Failure  string // the provider's failure reason, bounded; empty: none
}

// ProviderStream is a list of the provider that reconcile-payments pages through.
type ProviderStream string

// The streams. Events report changes to objects that were created earlier.
const (
	StreamIntents ProviderStream = "payment_intents"
	StreamRefunds ProviderStream = "refunds"
	StreamEvents  ProviderStream = "events"
)

// ProviderQuery requests one page of a stream, newest first.
type ProviderQuery struct {
	Stream ProviderStream
	From   time.Time // created then or later, by the provider's clock; zero: from the beginning
	After  string    // the last id of the page before; empty: the first page
	Limit  int       // 1 to 100
}

// ProviderPage is one page.
type ProviderPage struct {
	Objects []ProviderObject
	Newest  time.Time // when the newest object of the page was created, by the provider's clock; zero: the page is empty
	Last    string    // the id to go on after
	More    bool
}

// ProviderObject is one object at the provider. Exactly one of its pointers is set.
type ProviderObject struct {
	Ref    OrderRef // from its metadata; a zero OrderID: this service did not make it
	Intent *Intent
	Refund *ProviderRefund
	Charge *ProviderCharge
}

// ProviderCharge is the charge of an intent after a refund. Unlike a refund that was made by hand, it carries the
// metadata of its intent.
type ProviderCharge struct {
	IntentID string
	Refunded domain.Money
}

// ProviderEvent is a verified notification of the provider. It is only a hint: the use case retrieves the object before
// it acts.
type ProviderEvent struct {
	ID       string
	Type     string   // such as payment_intent.succeeded
	Ref      OrderRef // from its object's metadata; a zero OrderID: not about an order of this service
	IntentID string   // the intent that the event belongs to; empty: not known
	Dispute  bool     // a dispute was opened, changed or closed
}

// EventParser verifies the signature over the raw body of a provider event and parses it. It returns
// ErrInvalidSignature when the signature is wrong or too old; any other error means that the event cannot be parsed.
type EventParser interface {
	ParseEvent(body []byte, signature string) (ProviderEvent, error)
}

// ErrInvalidSignature means that an event was not signed by the provider, or was signed too long ago.
var ErrInvalidSignature = errors.New("invalid signature of a provider event")
