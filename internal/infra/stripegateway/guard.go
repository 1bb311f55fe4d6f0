package stripegateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"example.com/orders/internal/app"
)

const (
	// failures in a row, with no more than failuresWithin between the first and the last, stop the calls for pause. Then one
	// call goes through, and its outcome decides whether all do again.
	failures       = 10
	failuresWithin = time.Minute
	pause          = 5 * time.Second
)

// Guard is a gateway that leaves a failing provider alone. Each job backs off by itself, but a backlog of jobs would still
// call, and log, as fast as the worker works. A call that is not made is app.ErrProviderPaused. Each kind of call has a
// breaker of its own, and what the provider says of one order is no reason to stop asking for others.
func Guard(next app.PaymentGateway) app.PaymentGateway {
	return guard{next, newBreaker(), newBreaker(), newBreaker(), newBreaker()}
}

type guard struct {
	next                                   app.PaymentGateway
	charge, findCharge, refund, findRefund *breaker
}

type breaker = gobreaker.TwoStepCircuitBreaker[struct{}]

func newBreaker() *breaker {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: failuresWithin, Timeout: pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool {
			_, isSick := errors.AsType[sick](err)
			return !isSick
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) }, // the worker stops
	})
}

// ChargePaused implements app.PaymentGateway.
func (g guard) ChargePaused() error {
	state := g.charge.State()
	mayTry := state == gobreaker.StateHalfOpen && g.charge.Counts().Requests == 0
	if state == gobreaker.StateClosed || mayTry {
		return nil
	}
	return app.ErrProviderPaused
}

// Charge implements app.PaymentGateway.
func (g guard) Charge(ctx context.Context, r app.ChargeRequest) (app.ChargeAnswer, error) {
	return guarded(g.charge, func() (app.ChargeAnswer, error) { return g.next.Charge(ctx, r) })
}

// FindCharge implements app.PaymentGateway.
func (g guard) FindCharge(ctx context.Context, ref app.OrderRef) (found app.ChargeAnswer, ok bool, err error) {
	found, err = guarded(g.findCharge, func() (a app.ChargeAnswer, err error) {
		a, ok, err = g.next.FindCharge(ctx, ref)
		return a, err
	})
	return found, ok, err
}

// Refund implements app.PaymentGateway.
func (g guard) Refund(ctx context.Context, r app.RefundRequest) (app.RefundAnswer, error) {
	return guarded(g.refund, func() (app.RefundAnswer, error) { return g.next.Refund(ctx, r) })
}

// FindRefund implements app.PaymentGateway.
func (g guard) FindRefund(ctx context.Context, r app.RefundRequest) (found app.RefundAnswer, ok bool, err error) {
	found, err = guarded(g.findRefund, func() (a app.RefundAnswer, err error) {
		a, ok, err = g.next.FindRefund(ctx, r)
		return a, err
	})
	return found, ok, err
}

var errPanic error = sick{errors.New("the call panicked")}

func guarded[T any](b *breaker, call func() (T, error)) (answer T, err error) {
	done, err := b.Allow()
	if err != nil {
		return answer, fmt.Errorf("%w: %w", app.ErrProviderPaused, err)
	}
	err = errPanic // unless the call returns
	defer func() { done(err) }()
	return call()
}
