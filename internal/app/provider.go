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
// A nil error means that the answer is about exactly what was asked: its id, amount, currency and metadata were
// compared. An error is one of those below where the use case has to tell it apart; any other error means only that the
// outcome is not known, and that the caller learns it by retrieving the object.
type PaymentProvider interface {
	// CreateIntent creates an unconfirmed PaymentIntent. It moves no money.
	CreateIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// ConfirmIntent confirms the intent: this is the call that charges. The provider refuses a second confirmation.
	ConfirmIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// CancelIntent cancels the intent, unless it has succeeded or is processing.
	CancelIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// RetrieveIntent reads the intent by its id. It does not lag behind writes. A zero amount in the request: any amount.
	RetrieveIntent(ctx context.Context, r IntentRequest) (Intent, error)
	// SearchIntents finds every intent of the order by its metadata. It lags behind writes, by a minute or more.
	SearchIntents(ctx context.Context, r IntentRequest) ([]Intent, error)

	// CreateRefund refunds a part of a succeeded intent.
	CreateRefund(ctx context.Context, r RefundRequest) (ProviderRefund, error)
	// ListRefunds lists every refund of an intent. It does not lag behind writes.
	ListRefunds(ctx context.Context, r IntentRequest) ([]ProviderRefund, error)

	// List returns one page of what the provider holds: the objects of a stream that were created since From.
	List(ctx context.Context, q ProviderQuery) (ProviderPage, error)
}

// What a use case has to tell apart in a failed call.
var (
	// ErrProviderPaused says that the provider fails and was not asked: nothing happened.
	ErrProviderPaused = errors.New("provider is failing and was not asked")
	// ErrKeyUnusable says that the provider's key cannot tell any more what happened: the provider answered 5xx, which
	// it may have saved under the key, or 400 idempotency_error. The next attempt needs the next generation of the key.
	ErrKeyUnusable = errors.New("provider key is not usable any more")
	// ErrMismatch says that the provider's answer is about another object, amount or currency than was asked.
	ErrMismatch = errors.New("provider's answer is not about what was asked")
)

// RateLimitedError is the provider's 429.
type RateLimitedError struct{ After time.Duration } // zero: the provider did not say how long to wait

func (e *RateLimitedError) Error() string { return fmt.Sprintf("provider asks to wait %s", e.After) }

// RefusedError is the provider's definite no to a request (400, 402 or 404): this attempt did nothing. The provider may
// have saved it under the key, so that a later attempt needs the next generation of the key.
type RefusedError struct {
	Code string // "type/code/decline_code", each as the provider sends it, bounded; for rows and logs
	// Final tells that the refusal is about this charge or refund itself and stays (a charge that is refunded already
	// or disputed); false: its cause can be a mistake of the account's owner.
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

// IntentRequest names one intent of an order and what it must be about.
type IntentRequest struct {
	Ref           OrderRef
	IntentID      string // empty: not known yet
	Amount        domain.Money
	PaymentMethod string
	Generation    int // of the idempotency key: 1 at first, one more after each ErrKeyUnusable
}

// Intent is what the provider says of an intent.
type Intent struct {
	ID        string
	Status    IntentStatus
	Amount    domain.Money
	LastError string // the provider's codes of the last failed attempt, bounded; empty: none
}

// RefundRequest names one refund of an order and what it must be about.
type RefundRequest struct {
	Ref        OrderRef
	RefundID   uuid.UUID
	IntentID   string
	Amount     domain.Money
	Generation int // of the idempotency key; 0: the key of the release before this one, which has no tenant
}

// ProviderRefund is what the provider says of a refund.
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

// The streams. Events tell of changes to objects that were created earlier.
const (
	StreamIntents ProviderStream = "payment_intents"
	StreamRefunds ProviderStream = "refunds"
	StreamEvents  ProviderStream = "events"
)

// ProviderQuery asks for one page of a stream, newest first, as the provider lists.
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

// ProviderObject is what the provider holds, or what an event of the provider is about: exactly one of its pointers is set.
type ProviderObject struct {
	Ref    OrderRef // from its metadata; a zero OrderID: this service did not make it
	Intent *Intent
	Refund *ProviderRefund
	Charge *ProviderCharge
}

// ProviderCharge is the charge of an intent after a refund. Unlike a refund that was made by hand, it bears the metadata
// of its intent.
type ProviderCharge struct {
	IntentID string
	Refunded domain.Money
}

// ProviderEvent is a verified notification of the provider. It is a hint of what to look at, never a fact.
type ProviderEvent struct {
	ID       string
	Type     string   // such as payment_intent.succeeded
	Ref      OrderRef // from its object's metadata; a zero OrderID: not about an order of this service
	IntentID string   // the intent that it is about; empty: not known
	Dispute  bool     // a dispute was opened, changed or closed
}

// EventParser verifies the signature over the raw body of a provider's notification and reads it.
// ErrInvalidSignature: it is not the provider's, or too old. Any other error: it cannot be read.
type EventParser interface {
	ParseEvent(body []byte, signature string) (ProviderEvent, error)
}

// ErrInvalidSignature says that a notification was not signed by the provider, or too long ago.
var ErrInvalidSignature = errors.New("invalid signature of a provider event")
