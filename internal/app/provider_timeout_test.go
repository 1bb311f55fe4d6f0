package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

// slowProvider lets a lookup take all the time that there is, and notes until when each call may take.
type slowProvider struct{ until []time.Time }

func (p *slowProvider) call(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	p.until = append(p.until, deadline)
	return errors.New("no answer")
}

func (p *slowProvider) ChargePaused() error { return nil }

func (p *slowProvider) Charge(ctx context.Context, _ ChargeRequest) (ChargeAnswer, error) {
	return ChargeAnswer{}, p.call(ctx)
}

func (p *slowProvider) FindCharge(ctx context.Context, _ OrderRef) (ChargeAnswer, bool, error) {
	_ = p.call(ctx)
	return ChargeAnswer{}, false, nil // there is none
}

func (p *slowProvider) Refund(ctx context.Context, _ RefundRequest) (RefundAnswer, error) {
	return RefundAnswer{}, p.call(ctx)
}

func (p *slowProvider) FindRefund(ctx context.Context, _ RefundRequest) (RefundAnswer, bool, error) {
	_ = p.call(ctx)
	return RefundAnswer{}, false, nil
}

// Ensure the lookup and the call after it share one bound: with one each, the run would end at JOB_TIMEOUT with nothing
// recorded.
func TestProviderCallsOfARunShareTheirTime(t *testing.T) {
	t.Parallel()
	provider := &slowProvider{}
	s := New(nil, nil, provider, Settings{ChargeHorizon: time.Hour, ProviderTimeout: time.Minute}, time.Now)
	first := time.Now().Add(-2 * time.Hour)
	record, err := s.askForCharge(t.Context(), domain.PaymentState{AttemptedAt: first})
	require.NoError(t, err)
	require.NotNil(t, record, "nothing to record")
	_, err = s.askForRefund(t.Context(), domain.PaymentState{}, domain.Refund{AttemptedAt: first})
	require.Error(t, err)
	require.Len(t, provider.until, 4)
	require.False(t, provider.until[0].IsZero())
	require.Equal(t, provider.until[0], provider.until[1], "lookup and charge")
	require.False(t, provider.until[2].IsZero())
	require.Equal(t, provider.until[2], provider.until[3], "lookup and refund")
}
