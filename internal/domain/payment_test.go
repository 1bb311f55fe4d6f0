package domain_test

import (
	"math"
	"strings"
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
	o, err := place(domain.Item{"TEA-001", 2})
	require.NoError(t, err)
	p := domain.NewPayment(o.State(), "pm_card_visa").State()
	require.Equal(t, domain.PaymentPending, p.Status)
	require.Equal(t, eur(3998), p.Amount)
	require.Equal(t, o.State().ID, p.OrderID)
	require.Empty(t, p.IntentID)
	require.Equal(t, 1, p.KeyGeneration)
	require.Zero(t, p.Balance().Amount, "nothing can be refunded before a charge")
}

// Ensure exactly the listed changes of a payment's state exist, from every state to every state.
func TestPaymentTransitions(t *testing.T) {
	t.Parallel()
	changes := map[domain.PaymentStatus]func(*domain.Payment) error{
		domain.PaymentSucceeded: func(p *domain.Payment) error { return p.Succeed("pi_1", later(1)) },
		domain.PaymentFailed:    func(p *domain.Payment) error { return p.Fail(later(1)) },
		domain.PaymentCanceled:  func(p *domain.Payment) error { return p.Cancel(later(1)) },
	}
	for _, from := range []domain.PaymentStatus{
		domain.PaymentPending, domain.PaymentSucceeded, domain.PaymentFailed, domain.PaymentCanceled,
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

// paymentMay states the payment's machine once more, apart from the code: a pending one is decided once, nothing becomes
// pending again, and money that has moved is adopted.
func paymentMay(from, to domain.PaymentStatus) bool {
	if to == domain.PaymentSucceeded {
		return from != domain.PaymentSucceeded
	}
	return from == domain.PaymentPending && to != domain.PaymentPending
}

// Ensure a payment takes one intent, while it is pending, and begins again with the first key and without a refusal.
func TestPaymentTakesOneIntent(t *testing.T) {
	t.Parallel()
	p := paymentOf(domain.PaymentPending, 100)
	p.NextKey(0, later(1))
	p.Refuse("invalid_request_error", later(1))
	require.Error(t, p.NoteIntent("", later(2)))
	require.NoError(t, p.NoteIntent("pi_1", later(2)))
	require.Equal(t, "pi_1", p.State().IntentID)
	require.Equal(t, 1, p.State().KeyGeneration)
	require.Zero(t, p.State().Refusal)
	require.Error(t, p.NoteIntent("pi_2", later(3)), "a second intent")
	for _, status := range []domain.PaymentStatus{domain.PaymentSucceeded, domain.PaymentFailed, domain.PaymentCanceled} {
		require.Error(t, paymentOf(status, 100).NoteIntent("pi_1", later(2)), "%s", status)
	}
}

// Ensure only the run that used the current key moves to the next one: two runs that failed under one key use one more.
func TestKeysAdvanceOnce(t *testing.T) {
	t.Parallel()
	p := paymentOf(domain.PaymentPending, 100)
	require.NoError(t, p.NoteIntent("pi_1", later(1)))
	p.NextKey(1, later(2))
	p.NextKey(1, later(3))
	require.Equal(t, 2, p.State().KeyGeneration)

	r := refund(10, domain.RefundPending)
	p = paymentOf(domain.PaymentSucceeded, 100, r)
	before := p.State()
	require.True(t, p.StartRefund(r.ID, later(3)), "the first attempt")
	require.False(t, p.StartRefund(r.ID, later(4)))
	p.NextRefundKey(r.ID, 1, later(5))
	p.NextRefundKey(r.ID, 1, later(6))
	again, ok := p.Refund(r.ID)
	require.True(t, ok)
	require.Equal(t, 2, again.KeyGeneration)
	require.Equal(t, later(5), again.KeyFailedAt)
	require.Zero(t, before.Refunds[0].KeyGeneration, "a state that was handed out changed")
	require.False(t, p.StartRefund(uuid.New(), later(7)), "an unknown refund")
}

// Ensure a refund that the previous release has asked for is never a first attempt, and keeps that release's key.
func TestLegacyRefundsAreNotFirst(t *testing.T) {
	t.Parallel()
	r := refund(10, domain.RefundPending)
	r.LegacyAttemptAt = noon()
	p := paymentOf(domain.PaymentSucceeded, 100, r)
	require.False(t, p.StartRefund(r.ID, later(1)))
	again, _ := p.Refund(r.ID)
	require.Zero(t, again.KeyGeneration)
	p.NextRefundKey(r.ID, 0, later(2))
	again, _ = p.Refund(r.ID)
	require.Equal(t, 1, again.KeyGeneration)
	require.True(t, again.LegacyAttemptAt.IsZero(), "it stands in the way of the new key")
}

// Ensure a refusal keeps the time of the first one.
func TestRefusalsCountFromTheFirst(t *testing.T) {
	t.Parallel()
	p := paymentOf(domain.PaymentPending, 100)
	p.Refuse("a", later(1))
	p.Refuse("b", later(2))
	require.Equal(t, domain.Refusal{Code: "b", Since: later(1)}, p.State().Refusal)

	r := refund(10, domain.RefundPending)
	p = paymentOf(domain.PaymentSucceeded, 100, r)
	p.RefuseRefund(r.ID, "a", later(1))
	p.RefuseRefund(r.ID, "b", later(2))
	require.Equal(t, domain.Refusal{Code: "b", Since: later(1)}, p.State().Refunds[0].Refusal)
}

// Ensure a refund that the provider holds is adopted where it fits the charge, and only there.
func TestRefundsAreAdoptedWhereTheyFit(t *testing.T) {
	t.Parallel()
	known := refund(60, domain.RefundSucceeded)
	small, dollars := refund(10, domain.RefundSucceeded), refund(10, domain.RefundSucceeded)
	small.ID, dollars.Amount.Currency = known.ID, "USD"
	for name, c := range map[string]struct {
		refund domain.Refund
		status domain.PaymentStatus
		fits   bool
	}{
		"all that is left":  {refund(40, domain.RefundSucceeded), domain.PaymentSucceeded, true},
		"more than is left": {refund(41, domain.RefundSucceeded), domain.PaymentSucceeded, false},
		"the least":         {refund(1, domain.RefundSucceeded), domain.PaymentSucceeded, true},
		"known":             {known, domain.PaymentSucceeded, false},
		"known and small":   {small, domain.PaymentSucceeded, false},
		"another currency":  {dollars, domain.PaymentSucceeded, false},
		"failed":            {refund(100, domain.RefundFailed), domain.PaymentSucceeded, true},
		"an unpaid payment": {refund(1, domain.RefundSucceeded), domain.PaymentPending, false},
		"nothing":           {refund(0, domain.RefundSucceeded), domain.PaymentSucceeded, false},
		"less than nothing": {refund(-1, domain.RefundSucceeded), domain.PaymentSucceeded, false},
	} {
		p := paymentOf(c.status, 100, known)
		require.Equal(t, c.fits, p.AdoptRefund(c.refund) == nil, name)
		require.LessOrEqual(t, p.State().Refunded().Amount, int64(100), name)
	}
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

// Ensure a refund is settled as its machine says: a failed one frees its amount, a succeeded one can still fail, and a
// failed one that turns out to have succeeded counts again where the balance covers it.
func TestRefundsAreSettled(t *testing.T) {
	t.Parallel()
	r := refund(60, domain.RefundPending)
	p := paymentOf(domain.PaymentSucceeded, 100, r)
	before := p.State()
	require.Error(t, p.SettleRefund(r.ID, domain.RefundPending, "re_1", later(2)))
	require.Error(t, p.SettleRefund(uuid.New(), domain.RefundSucceeded, "re_1", later(2)))
	for i, step := range []struct {
		to      domain.RefundStatus
		balance int64
	}{{domain.RefundSucceeded, 40}, {domain.RefundFailed, 100}, {domain.RefundSucceeded, 40}} {
		require.NoError(t, p.SettleRefund(r.ID, step.to, "re_1", later(3+i)))
		require.Error(t, p.SettleRefund(r.ID, step.to, "re_1", later(4+i)), "the same again")
		require.Equal(t, eur(step.balance), p.State().Balance())
		require.Equal(t, later(3+i), p.State().UpdatedAt)
	}
	require.Equal(t, domain.RefundPending, before.Refunds[0].Status, "a state that was handed out changed")

	failed := refund(60, domain.RefundFailed)
	p = paymentOf(domain.PaymentSucceeded, 100, failed, refund(50, domain.RefundSucceeded))
	require.Error(t, p.SettleRefund(failed.ID, domain.RefundSucceeded, "re_1", later(2)), "more than is left")
}

// Ensure what the provider holds of the refunds is those that have its id, without the failed ones.
func TestRefundedAtTheProvider(t *testing.T) {
	t.Parallel()
	known := func(amount int64, status domain.RefundStatus) domain.Refund {
		r := refund(amount, status)
		r.ProviderID = "re_1"
		return r
	}
	unknown := refund(10, domain.RefundPending)
	unknown.ProviderID = ""
	p := paymentOf(domain.PaymentSucceeded, 100, unknown, known(20, domain.RefundPending), known(30, domain.RefundSucceeded), known(40, domain.RefundFailed))
	require.Equal(t, eur(50), p.State().RefundedThere())
	require.Equal(t, eur(60), p.State().Refunded())
}

// Ensure a refund takes the provider's id once, and reports whether it did.
func TestRefundsAreIdentifiedOnce(t *testing.T) {
	t.Parallel()
	unknown, known := refund(10, domain.RefundPending), refund(20, domain.RefundPending)
	unknown.ProviderID, known.ProviderID = "", "re_1"
	p := paymentOf(domain.PaymentSucceeded, 100, unknown, known)
	require.True(t, p.IdentifyRefund(unknown.ID, "re_2", later(2)))
	require.False(t, p.IdentifyRefund(unknown.ID, "re_3", later(3)))
	require.False(t, p.IdentifyRefund(known.ID, "re_3", later(3)))
	require.False(t, p.IdentifyRefund(uuid.New(), "re_3", later(3)))
	require.Equal(t, []string{"re_2", "re_1"}, []string{p.State().Refunds[0].ProviderID, p.State().Refunds[1].ProviderID})
	require.Equal(t, later(2), p.State().UpdatedAt)
}

// Ensure a payment is settled exactly when its outcome is known.
func TestSettledPayments(t *testing.T) {
	t.Parallel()
	for status, settled := range map[domain.PaymentStatus]bool{
		domain.PaymentPending:   false,
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
		"p": true, strings.Repeat("p", 255): true, strings.Repeat("p", 256): false,
	} {
		require.Equal(t, valid, domain.ValidPaymentMethod(method), "%q", method)
	}
}
