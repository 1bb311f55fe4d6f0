package telemetry

import (
	"context"
	"log/slog"
	"time"

	"example.com/orders/internal/app"
)

// ObserveGateway counts the calls of a gateway and logs what the provider refuses: a declined card is business as usual, a
// refund that is refused needs somebody to look.
func ObserveGateway(g app.PaymentGateway, m *Metrics, log *slog.Logger) app.PaymentGateway {
	return gateway{g, m, log}
}

type gateway struct {
	next    app.PaymentGateway
	metrics *Metrics
	log     *slog.Logger
}

func (g gateway) ChargePaused() error { return g.next.ChargePaused() }

func (g gateway) Charge(ctx context.Context, r app.ChargeRequest) (app.ChargeAnswer, error) {
	start := time.Now()
	answer, err := g.next.Charge(ctx, r)
	g.metrics.ProviderCall(ctx, "charge", outcome(answer.Succeeded, "succeeded", "declined", err), time.Since(start))
	g.refused(ctx, slog.LevelInfo, "charge refused", r.Ref, answer.Refusal)
	return answer, err
}

func (g gateway) FindCharge(ctx context.Context, ref app.OrderRef) (app.ChargeAnswer, bool, error) {
	start := time.Now()
	answer, found, err := g.next.FindCharge(ctx, ref)
	g.metrics.ProviderCall(ctx, "find_charge", outcome(found, "found", "missing", err), time.Since(start))
	return answer, found, err
}

func (g gateway) Refund(ctx context.Context, r app.RefundRequest) (app.RefundAnswer, error) {
	start := time.Now()
	answer, err := g.next.Refund(ctx, r)
	g.metrics.ProviderCall(ctx, "refund", outcome(answer.Succeeded, "succeeded", "declined", err), time.Since(start))
	g.refused(ctx, slog.LevelWarn, "refund refused", r.Ref, answer.Refusal)
	return answer, err
}

func (g gateway) FindRefund(ctx context.Context, r app.RefundRequest) (app.RefundAnswer, bool, error) {
	start := time.Now()
	answer, found, err := g.next.FindRefund(ctx, r)
	g.metrics.ProviderCall(ctx, "find_refund", outcome(found, "found", "missing", err), time.Since(start))
	return answer, found, err
}

func (g gateway) refused(ctx context.Context, level slog.Level, message string, ref app.OrderRef, reason string) {
	if reason != "" {
		g.log.Log(ctx, level, message, "tenant", ref.Tenant, "order_id", ref.OrderID, "reason", reason)
	}
}

func outcome(yes bool, ifYes, ifNo string, err error) string {
	switch {
	case err != nil:
		return "unknown"
	case yes:
		return ifYes
	default:
		return ifNo
	}
}
