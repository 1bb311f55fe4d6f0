package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/domain"
)

type payments struct{ tx pgx.Tx }

func (r payments) Add(ctx context.Context, p *domain.Payment) error {
	s := p.State()
	_, err := r.tx.Exec(ctx, `
		INSERT INTO payments (tenant_id, order_id, status, amount, currency, payment_method, charge_id, key_generation,
			created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`,
		s.Tenant, s.OrderID, s.Status, s.Amount.Amount, s.Amount.Currency, s.PaymentMethod, s.IntentID, s.KeyGeneration,
		s.CreatedAt, s.UpdatedAt)
	if err != nil {
		return fmt.Errorf("add payment: %w", err)
	}
	p.Stored(1)
	return nil
}

func (r payments) ForUpdate(ctx context.Context, tenant string, id domain.OrderID) (*domain.Payment, error) {
	rows, _ := r.tx.Query(ctx, selectPayment+` WHERE tenant_id = $1 AND order_id = $2 FOR UPDATE`, tenant, id)
	s, err := pgx.CollectExactlyOneRow(rows, scanPayment)
	if err != nil {
		return nil, notFound("lock payment", err)
	}
	if s.Refunds, err = readRefunds(ctx, r.tx, s); err != nil {
		return nil, err
	}
	return domain.RestorePayment(s), nil
}

// Save stores the payment and its refunds: refunds are part of the aggregate, under its version.
func (r payments) Save(ctx context.Context, p *domain.Payment) error {
	s := p.State()
	tag, err := r.tx.Exec(ctx, `
		UPDATE payments SET status = $4, charge_id = $5, key_generation = $6, refusal = $7, refused_at = $8,
			attempted_at = $9, updated_at = $10, version = $3 + 1
		WHERE tenant_id = $1 AND order_id = $2 AND version = $3`,
		s.Tenant, s.OrderID, s.Version, s.Status, s.IntentID, s.KeyGeneration, s.Refusal.Code, nullable(s.Refusal.Since),
		nullable(s.LegacyAttemptAt), s.UpdatedAt)
	if err := saved("payment", tag, err); err != nil {
		return err
	}
	if len(s.Refunds) > 0 {
		if err := r.saveRefunds(ctx, s); err != nil {
			return err
		}
	}
	p.Stored(s.Version + 1)
	return nil
}

func (r payments) saveRefunds(ctx context.Context, s domain.PaymentState) error {
	batch := &pgx.Batch{}
	for _, f := range s.Refunds {
		batch.Queue(`
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
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("save refunds: %w", err)
	}
	return nil
}

// selectPayment reads the status unresolved, which only the release before this one stores, as pending: both say that the
// provider has not decided as far as is known here.
const selectPayment = `
SELECT tenant_id, order_id, CASE status WHEN 'unresolved' THEN 'pending' ELSE status END, amount, currency,
	payment_method, charge_id, key_generation, refusal, refused_at, attempted_at, created_at, updated_at, version
FROM payments`

func scanPayment(row pgx.CollectableRow) (s domain.PaymentState, err error) {
	var refused, attempted *time.Time
	err = row.Scan(&s.Tenant, &s.OrderID, &s.Status, &s.Amount.Amount, &s.Amount.Currency, &s.PaymentMethod, &s.IntentID,
		&s.KeyGeneration, &s.Refusal.Code, &refused, &attempted, &s.CreatedAt, &s.UpdatedAt, &s.Version)
	s.Refusal.Since, s.LegacyAttemptAt = instant(refused), instant(attempted)
	s.CreatedAt, s.UpdatedAt = s.CreatedAt.UTC(), s.UpdatedAt.UTC()
	return s, err
}

func readRefunds(ctx context.Context, db querier, p domain.PaymentState) ([]domain.Refund, error) {
	rows, _ := db.Query(ctx, `
		SELECT id, amount, status, reason, provider_id, key_generation, key_failed_at, refusal, refused_at, attempted_at,
			created_at
		FROM refunds WHERE tenant_id = $1 AND order_id = $2 ORDER BY created_at, id`, p.Tenant, p.OrderID)
	refunds, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f domain.Refund, err error) {
		var failed, refused, attempted *time.Time
		err = row.Scan(&f.ID, &f.Amount.Amount, &f.Status, &f.Reason, &f.ProviderID, &f.KeyGeneration, &failed,
			&f.Refusal.Code, &refused, &attempted, &f.CreatedAt)
		f.Amount.Currency, f.CreatedAt = p.Amount.Currency, f.CreatedAt.UTC()
		f.KeyFailedAt, f.Refusal.Since, f.LegacyAttemptAt = instant(failed), instant(refused), instant(attempted)
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("read refunds: %w", err)
	}
	return refunds, nil
}
