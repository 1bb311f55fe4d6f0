package domain_test

import (
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

func paymentOf(status domain.PaymentStatus, amount int64, refunds ...domain.Refund) *domain.Payment {
	return domain.RestorePayment(domain.PaymentState{
		Tenant: "default", OrderID: uuid.New(), Status: status, Amount: eur(amount), Refunds: refunds,
		CreatedAt: noon(), UpdatedAt: noon(), Version: 2,
	})
}

func refund(amount int64, status domain.RefundStatus) domain.Refund {
	return domain.Refund{ID: uuid.New(), Amount: eur(amount), Status: status, CreatedAt: later(1)}
}

// Ensure a payment begins pending, with the order's total, and with no charge.
func TestPaymentBeginsPending(t *testing.T) {
	t.Parallel()
	o, err := place(domain.Wanted{"TEA-001", 2})
	require.NoError(t, err)
	p := domain.NewPayment(o.State(), "pm_card_visa").State()
	require.Equal(t, domain.PaymentPending, p.Status)
	require.Equal(t, eur(3998), p.Amount)
	require.Equal(t, o.State().ID, p.OrderID)
	require.Empty(t, p.ChargeID)
	require.True(t, p.AttemptedAt.IsZero())
	require.Zero(t, p.Balance().Amount, "nothing can be refunded before a charge")
}

// Ensure exactly the listed changes of a payment's state exist, from every state to every state.
func TestPaymentTransitions(t *testing.T) {
	t.Parallel()
	changes := map[domain.PaymentStatus]func(*domain.Payment) error{
		domain.PaymentSucceeded:  func(p *domain.Payment) error { return p.Succeed("pi_1", later(1)) },
		domain.PaymentFailed:     func(p *domain.Payment) error { return p.Fail(later(1)) },
		domain.PaymentUnresolved: func(p *domain.Payment) error { return p.GiveUp(later(1)) },
		domain.PaymentCanceled:   func(p *domain.Payment) error { return p.Cancel(later(1)) },
	}
	for _, from := range []domain.PaymentStatus{
		domain.PaymentPending, domain.PaymentUnresolved, domain.PaymentSucceeded, domain.PaymentFailed, domain.PaymentCanceled,
	} {
		for to, change := range changes {
			p := paymentOf(from, 100)
			before := p.State()
			err := change(p)
			if !paymentMay(from, to) {
				require.Error(t, err, "%s → %s", from, to)
				require.Equal(t, before, p.State(), "a refused change changed something")
				continue
			}
			require.NoError(t, err, "%s → %s", from, to)
			require.Equal(t, to, p.State().Status)
			require.Equal(t, later(1), p.State().UpdatedAt)
			require.Equal(t, before.Version, p.State().Version, "the version is the store's")
		}
	}
}

// paymentMay states the payment's machine once more, apart from the code: what has no known outcome may get one, once,
// and nothing becomes pending again.
func paymentMay(from, to domain.PaymentStatus) bool {
	if to == domain.PaymentCanceled {
		return from == domain.PaymentPending // of an unresolved one somebody has asked
	}
	open := from == domain.PaymentPending || from == domain.PaymentUnresolved
	return open && to != domain.PaymentPending
}

// Ensure the horizon counts from the first attempt, whatever follows.
func TestOnlyTheFirstAttemptCounts(t *testing.T) {
	t.Parallel()
	p := paymentOf(domain.PaymentPending, 100)
	require.True(t, p.Attempt(later(1)))
	require.False(t, p.Attempt(later(2)))
	require.Equal(t, later(1), p.State().AttemptedAt)

	r := refund(10, domain.RefundPending)
	p = paymentOf(domain.PaymentSucceeded, 100, r)
	before := p.State()
	require.True(t, p.AttemptRefund(r.ID, later(3)))
	require.False(t, p.AttemptRefund(r.ID, later(4)))
	require.False(t, p.AttemptRefund(uuid.New(), later(4)), "an unknown refund")
	again, ok := p.Refund(r.ID)
	require.True(t, ok)
	require.Equal(t, later(3), again.AttemptedAt)
	require.True(t, before.Refunds[0].AttemptedAt.IsZero(), "a state that was handed out changed")
}

// Ensure refunds are refused with their codes, and never exceed the charge together.
func TestRefundsStayWithinTheCharge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		payment *domain.Payment
		amount  domain.Money
		code    domain.Code
	}{
		{"all of it", paymentOf(domain.PaymentSucceeded, 100), eur(100), ""},
		{"one too many", paymentOf(domain.PaymentSucceeded, 100), eur(101), domain.CodeRefundExceedsCharge},
		{"what a pending refund leaves", paymentOf(domain.PaymentSucceeded, 100, refund(60, domain.RefundPending)), eur(40), ""},
		{"more than a pending refund leaves", paymentOf(domain.PaymentSucceeded, 100, refund(60, domain.RefundPending)), eur(41), domain.CodeRefundExceedsCharge},
		{"more than a succeeded refund leaves", paymentOf(domain.PaymentSucceeded, 100, refund(60, domain.RefundSucceeded)), eur(41), domain.CodeRefundExceedsCharge},
		{"what a failed refund gave back", paymentOf(domain.PaymentSucceeded, 100, refund(60, domain.RefundFailed)), eur(100), ""},
		{"nothing is left", paymentOf(domain.PaymentSucceeded, 100, refund(100, domain.RefundSucceeded)), eur(1), domain.CodeRefundExceedsCharge},
		{"an overflowing sum", paymentOf(domain.PaymentSucceeded, math.MaxInt64, refund(1, domain.RefundPending)), eur(math.MaxInt64), domain.CodeRefundExceedsCharge},
		{"nothing", paymentOf(domain.PaymentSucceeded, 100), eur(0), domain.CodeValidationFailed},
		{"less than nothing", paymentOf(domain.PaymentSucceeded, 100), eur(-1), domain.CodeValidationFailed},
		{"the least there is", paymentOf(domain.PaymentSucceeded, 100), eur(math.MinInt64), domain.CodeValidationFailed},
		{"another currency", paymentOf(domain.PaymentSucceeded, 100), domain.Money{Amount: 1, Currency: "USD"}, domain.CodeCurrencyMismatch},
		{"a pending charge", paymentOf(domain.PaymentPending, 100), eur(1), domain.CodeOrderNotRefundable},
		{"a declined charge", paymentOf(domain.PaymentFailed, 100), eur(1), domain.CodeOrderNotRefundable},
		{"an unresolved charge", paymentOf(domain.PaymentUnresolved, 100), eur(1), domain.CodeOrderNotRefundable},
		{"a charge that never was", paymentOf(domain.PaymentCanceled, 100), eur(1), domain.CodeOrderNotRefundable},
	} {
		before := c.payment.State()
		err := c.payment.RequestRefund(domain.Refund{
			ID: uuid.New(), Amount: c.amount, Status: domain.RefundSucceeded, CreatedAt: later(2),
		})
		require.Equal(t, c.code, codeOf(err), c.name)
		after := c.payment.State()
		if c.code != "" {
			require.Equal(t, before, after, "%s: a refused refund changed something", c.name)
			continue
		}
		require.Len(t, after.Refunds, len(before.Refunds)+1, c.name)
		require.Equal(t, domain.RefundPending, after.Refunds[len(before.Refunds)].Status, "a refund begins pending")
		require.Equal(t, before.Refunded().Amount+c.amount.Amount, after.Refunded().Amount, c.name)
		require.Equal(t, later(2), after.UpdatedAt)
	}
}

// Ensure a refund is settled once, and that one that failed frees its amount.
func TestRefundsAreSettledOnce(t *testing.T) {
	t.Parallel()
	for _, outcome := range []domain.RefundStatus{domain.RefundSucceeded, domain.RefundFailed} {
		r := refund(60, domain.RefundPending)
		p := paymentOf(domain.PaymentSucceeded, 100, r)
		before := p.State()
		require.Error(t, p.SettleRefund(r.ID, domain.RefundPending, later(2)))
		require.Error(t, p.SettleRefund(uuid.New(), outcome, later(2)))
		require.NoError(t, p.SettleRefund(r.ID, outcome, later(3)))
		require.Equal(t, domain.RefundPending, before.Refunds[0].Status, "a state that was handed out changed")
		for _, again := range []domain.RefundStatus{domain.RefundSucceeded, domain.RefundFailed} {
			require.Error(t, p.SettleRefund(r.ID, again, later(4)), "%s → %s", outcome, again)
		}
		left := map[domain.RefundStatus]int64{domain.RefundSucceeded: 40, domain.RefundFailed: 100}
		require.Equal(t, eur(left[outcome]), p.State().Balance())
		require.Equal(t, later(3), p.State().UpdatedAt)
	}
}

// Ensure a payment is settled exactly when its outcome is known.
func TestSettledPayments(t *testing.T) {
	t.Parallel()
	for status, settled := range map[domain.PaymentStatus]bool{
		domain.PaymentPending: false, domain.PaymentUnresolved: false,
		domain.PaymentSucceeded: true, domain.PaymentFailed: true, domain.PaymentCanceled: true,
	} {
		require.Equal(t, settled, paymentOf(status, 1).Settled(), "%s", status)
	}
}

// Ensure a payment method is a token: visible ASCII, bounded.
func TestPaymentMethodsAreTokens(t *testing.T) {
	t.Parallel()
	for method, valid := range map[string]bool{
		"pm_card_visa": true, "!~": true, "": false, "a b": false, "a\n": false, "é": false, "a\x7f": false,
	} {
		require.Equal(t, valid, domain.ValidPaymentMethod(method), "%q", method)
	}
}
