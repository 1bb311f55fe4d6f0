package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

type payments struct{ s *Session }

func (r payments) Add(_ context.Context, p *domain.Payment) error {
	s := p.State()
	r.s.Write("add payment", `
		INSERT INTO payments (tenant_id, order_id, status, amount, currency, payment_method, charge_id, key_generation,
			created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`,
		s.Tenant, s.OrderID, s.Status, s.Amount.Amount, s.Amount.Currency, s.PaymentMethod, s.IntentID, s.KeyGeneration,
		s.CreatedAt, s.UpdatedAt)
	r.s.advance(p, 0)
	return nil
}

func (r payments) ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Payment, error) {
	payment := r.lock(tenant, id)
	if err := r.s.flush(ctx); err != nil {
		return nil, notFound(err)
	}
	return payment(), nil
}

// lock collects the statements that lock a payment and then read its refunds. It returns what gives the payment once they
// have been sent.
func (r payments) lock(tenant string, id domain.OrderID) func() *domain.Payment {
	var s domain.PaymentState
	var refunds []domain.Refund
	r.s.read("lock payment", selectPayment+` WHERE tenant_id = $1 AND order_id = $2 FOR UPDATE`, one(&s, scanPayment), tenant, id)
	r.s.read("read refunds", selectRefunds, all(&refunds, scanRefund), tenant, id)
	return func() *domain.Payment {
		s.Refunds = refunds
		inCurrency(&s)
		return domain.RestorePayment(s)
	}
}

// Save stores the payment and its refunds, which are part of the aggregate and covered by its version.
func (r payments) Save(_ context.Context, p *domain.Payment) error {
	s := p.State()
	r.s.writeOne(statement{name: "save payment", missed: app.ErrStale}, `
		UPDATE payments SET status = $4, charge_id = $5, key_generation = $6, refusal = $7, refused_at = $8,
			attempted_at = $9, updated_at = $10, version = $3 + 1
		WHERE tenant_id = $1 AND order_id = $2 AND version = $3`,
		s.Tenant, s.OrderID, s.Version, s.Status, s.IntentID, s.KeyGeneration, s.Refusal.Code, nullable(s.Refusal.Since),
		nullable(s.LegacyAttemptAt), s.UpdatedAt)
	for _, f := range s.Refunds {
		r.saveRefund(s, f)
	}
	r.s.advance(p, s.Version)
	return nil
}

func (r payments) saveRefund(s domain.PaymentState, f domain.Refund) {
	r.s.Write("save refund", `
			INSERT INTO refunds (tenant_id, order_id, id, amount, status, reason, provider_id, key_generation, key_failed_at,
				refusal, refused_at, attempted_at, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
			ON CONFLICT (tenant_id, order_id, id) DO UPDATE
			SET status = excluded.status, provider_id = excluded.provider_id, key_generation = excluded.key_generation,
				key_failed_at = excluded.key_failed_at, refusal = excluded.refusal, refused_at = excluded.refused_at,
				attempted_at = excluded.attempted_at`,
		s.Tenant, s.OrderID, f.ID, f.Amount.Amount, f.Status, f.Reason, f.ProviderID, f.KeyGeneration,
		nullable(f.KeyFailedAt), f.Refusal.Code, nullable(f.Refusal.Since), nullable(f.LegacyAttemptAt), f.CreatedAt)
}

// paymentColumns maps the status unresolved, which only the previous release stores, to pending: in both states the
// outcome is unknown.
const paymentColumns = `tenant_id, order_id, CASE status WHEN 'unresolved' THEN 'pending' ELSE status END, amount, currency,
	payment_method, charge_id, key_generation, refusal, refused_at, attempted_at, created_at, updated_at, version`

const selectPayment = `SELECT ` + paymentColumns + ` FROM payments`

func scanPayment(row pgx.CollectableRow) (domain.PaymentState, error) { return scanPaymentWith(row) }

// scanPaymentWith scans a payment and the columns behind it.
func scanPaymentWith(row pgx.CollectableRow, more ...any) (s domain.PaymentState, err error) {
	var refused, attempted *time.Time
	err = row.Scan(append([]any{&s.Tenant, &s.OrderID, &s.Status, &s.Amount.Amount, &s.Amount.Currency, &s.PaymentMethod,
		&s.IntentID, &s.KeyGeneration, &s.Refusal.Code, &refused, &attempted, &s.CreatedAt, &s.UpdatedAt, &s.Version}, more...)...)
	s.Refusal.Since, s.LegacyAttemptAt = instant(refused), instant(attempted)
	s.CreatedAt, s.UpdatedAt = s.CreatedAt.UTC(), s.UpdatedAt.UTC()
	return s, err
}

const selectRefunds = `
SELECT id, amount, status, reason, provider_id, key_generation, key_failed_at, refusal, refused_at, attempted_at, created_at
FROM refunds WHERE tenant_id = $1 AND order_id = $2 ORDER BY created_at, id`

func scanRefund(row pgx.CollectableRow) (f domain.Refund, err error) {
	var failed, refused, attempted *time.Time
	err = row.Scan(&f.ID, &f.Amount.Amount, &f.Status, &f.Reason, &f.ProviderID, &f.KeyGeneration, &failed,
		&f.Refusal.Code, &refused, &attempted, &f.CreatedAt)
	f.CreatedAt, f.KeyFailedAt = f.CreatedAt.UTC(), instant(failed)
	f.Refusal.Since, f.LegacyAttemptAt = instant(refused), instant(attempted)
	return f, err
}

// inCurrency gives the refunds their payment's currency.
func inCurrency(s *domain.PaymentState) {
	for i := range s.Refunds {
		s.Refunds[i].Amount.Currency = s.Amount.Currency
	}
}
