package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"example.com/orders/internal/app"
)

// ObserveProvider counts and times the calls to the payment provider.
func ObserveProvider(next app.PaymentProvider, m *Metrics) app.PaymentProvider {
	return provider{next, m}
}

type provider struct {
	next    app.PaymentProvider
	metrics *Metrics
}

// observed counts one call: answered, refused, unusable_key, rate_limited, mismatch or unknown.
func observed[T any](ctx context.Context, m *Metrics, call string, ask func() (T, error)) (T, error) {
	start := time.Now()
	answer, err := ask()
	m.ProviderCall(ctx, call, outcome(err), time.Since(start))
	return answer, err
}

func outcome(err error) string {
	_, refused := errors.AsType[*app.RefusedError](err)
	_, limited := errors.AsType[*app.RateLimitedError](err)
	switch {
	case err == nil:
		return "answered"
	case refused:
		return "refused"
	case limited:
		return "rate_limited"
	case errors.Is(err, app.ErrKeyUnusable):
		return "key_unusable"
	case errors.Is(err, app.ErrMismatch):
		return "mismatch"
	default:
		return "unknown"
	}
}

func (p provider) CreateIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return observed(ctx, p.metrics, "create_intent", func() (app.Intent, error) { return p.next.CreateIntent(ctx, r) })
}

func (p provider) ConfirmIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return observed(ctx, p.metrics, "confirm_intent", func() (app.Intent, error) { return p.next.ConfirmIntent(ctx, r) })
}

func (p provider) CancelIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return observed(ctx, p.metrics, "cancel_intent", func() (app.Intent, error) { return p.next.CancelIntent(ctx, r) })
}

func (p provider) RetrieveIntent(ctx context.Context, r app.IntentRequest) (app.Intent, error) {
	return observed(ctx, p.metrics, "retrieve_intent", func() (app.Intent, error) { return p.next.RetrieveIntent(ctx, r) })
}

func (p provider) SearchIntents(ctx context.Context, r app.IntentRequest) ([]app.Intent, error) {
	return observed(ctx, p.metrics, "search_intents", func() ([]app.Intent, error) { return p.next.SearchIntents(ctx, r) })
}

func (p provider) CreateRefund(ctx context.Context, r app.RefundRequest) (app.ProviderRefund, error) {
	return observed(ctx, p.metrics, "create_refund",
		func() (app.ProviderRefund, error) { return p.next.CreateRefund(ctx, r) })
}

func (p provider) ListRefunds(ctx context.Context, r app.IntentRequest) ([]app.ProviderRefund, error) {
	return observed(ctx, p.metrics, "list_refunds",
		func() ([]app.ProviderRefund, error) { return p.next.ListRefunds(ctx, r) })
}

func (p provider) List(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	return observed(ctx, p.metrics, "list_"+string(q.Stream), func() (app.ProviderPage, error) { return p.next.List(ctx, q) })
}

// Findings counts and logs payment findings. It implements app.Monitor.
type Findings struct {
	Metrics *Metrics
	Log     *slog.Logger
}

// Finding implements app.Monitor. A declined card is normal (INFO); every other finding needs an operator (WARN).
func (f Findings) Finding(ctx context.Context, kind app.FindingKind, ref app.OrderRef, detail string) {
	level := slog.LevelWarn
	if kind == app.FindingChargeDeclined {
		level = slog.LevelInfo
	}
	f.Metrics.Finding(ctx, string(kind))
	f.Log.Log(ctx, level, "payment finding", "kind", kind, "tenant", ref.Tenant, "order_id", ref.OrderID, "detail", detail)
}
