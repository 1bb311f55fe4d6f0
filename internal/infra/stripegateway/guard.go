package stripegateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"example.com/orders/internal/app"
)

const (
	// failures in a row, with no more than failuresWithin between the first and the last, stop the calls for pause.
	// Then one call is let through, and its outcome closes or opens the circuit again.
	failures       = 10
	failuresWithin = time.Minute
	pause          = 5 * time.Second
)

// Guard is a circuit breaker around a provider. Each job has its own backoff, but a backlog of jobs would still call a
// failing provider at the worker's full rate. While a circuit is open, calls return app.ErrProviderPaused. Each kind of
// call has its own circuit. A refusal of one order does not count as a failure.
func Guard(next app.PaymentProvider) app.PaymentProvider {
	return &guard{
		next:    next,
		create:  newCircuit(),
		confirm: newCircuit(), cancel: newCircuit(), retrieve: newCircuit(), search: newCircuit(),
		refund: newCircuit(), refunds: newCircuit(), list: newCircuit(),
	}
}

type guard struct {
	next                                      app.PaymentProvider
	create, confirm, cancel, retrieve, search *circuit
	refund, refunds, list                     *circuit
}

// circuit is closed while calls of one kind are made, and open while they are not.
type circuit struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu          sync.Mutex
	pausedUntil time.Time // by a 429
}

func newCircuit() *circuit {
	return &circuit{breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: failuresWithin, Timeout: pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool {
			_, down := errors.AsType[providerDown](err)
			return !down
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) }, // the worker is shutting down
	})}
}

// CreateIntent implements app.PaymentProvider.
func (g *guard) CreateIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return guarded(ctx, g.create, g.next.CreateIntent, r)
}

// ConfirmIntent implements app.PaymentProvider.
func (g *guard) ConfirmIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return guarded(ctx, g.confirm, g.next.ConfirmIntent, r)
}

// CancelIntent implements app.PaymentProvider.
func (g *guard) CancelIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return guarded(ctx, g.cancel, g.next.CancelIntent, r)
}

// RetrieveIntent implements app.PaymentProvider.
func (g *guard) RetrieveIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return guarded(ctx, g.retrieve, g.next.RetrieveIntent, r)
}

// SearchIntents implements app.PaymentProvider.
func (g *guard) SearchIntents(ctx context.Context, r app.IntentRequest) ([]app.Intent, error) {
	return guarded(ctx, g.search, g.next.SearchIntents, r)
}

// CreateRefund implements app.PaymentProvider.
func (g *guard) CreateRefund(ctx context.Context, r app.RefundRequest) (app.ProviderRefund, error) {
	return guarded(ctx, g.refund, g.next.CreateRefund, r)
}

// ListRefunds implements app.PaymentProvider.
func (g *guard) ListRefunds(ctx context.Context, r app.IntentRequest) ([]app.ProviderRefund, error) {
	return guarded(ctx, g.refunds, g.next.ListRefunds, r)
}

// List implements app.PaymentProvider.
func (g *guard) List(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	return guarded(ctx, g.list, g.next.List, q)
}

var errPanic error = providerDown{errors.New("the call panicked")}

func guarded[Q, A any](
	ctx context.Context, c *circuit, call func(context.Context, Q) (A, error), q Q,
) (answer A, err error) {
	done, err := c.allow()
	if err != nil {
		return answer, err
	}
	err = errPanic // unless the call returns
	defer func() { done(err) }()
	return call(ctx, q)
}

// allow returns app.ErrProviderPaused, or a function that takes the outcome of the call.
func (c *circuit) allow() (done func(error), err error) {
	c.mu.Lock()
	wait := time.Until(c.pausedUntil)
	c.mu.Unlock()
	if wait > 0 {
		return nil, fmt.Errorf("%w: it asks to wait another %s", app.ErrProviderPaused, wait.Round(time.Second))
	}
	tell, err := c.breaker.Allow()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", app.ErrProviderPaused, err)
	}
	return func(err error) {
		c.heed(err)
		tell(err)
	}, nil
}

// heed stores the wait that a 429 asks for; the latest end wins.
func (c *circuit) heed(err error) {
	limited, ok := errors.AsType[*app.RateLimitedError](err)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(limited.After); until.After(c.pausedUntil) {
		c.pausedUntil = until
	}
}
