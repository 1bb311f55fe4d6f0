package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/app"
)

type inbox struct{ tx pgx.Tx }

// Add implements app.Inbox. With two concurrent deliveries, one waits here until the other's transaction ends.
func (r inbox) Add(ctx context.Context, e app.ProviderEvent, now, expires time.Time) (bool, error) {
	tag, err := r.tx.Exec(ctx, `
		INSERT INTO provider_events (tenant_id, event_id, type, received_at, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, event_id) DO NOTHING`, e.Ref.Tenant, e.ID, e.Type, now, expires)
	if err != nil {
		return false, fmt.Errorf("add provider event: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

type unmatchedCharges struct{ tx pgx.Tx }

// Add implements app.UnmatchedCharges.
func (r unmatchedCharges) Add(ctx context.Context, c app.UnmatchedCharge, now time.Time) (bool, error) {
	tag, err := r.tx.Exec(ctx, `
		INSERT INTO unmatched_charges (tenant_id, intent_id, order_id, kind, amount, currency, key_generation, refund_id,
			created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8) ON CONFLICT (tenant_id, intent_id) DO NOTHING`,
		c.Ref.Tenant, c.Intent.ID, c.Ref.OrderID, c.Kind, c.Intent.Amount.Amount, c.Intent.Amount.Currency,
		c.KeyGeneration, now)
	if err != nil {
		return false, fmt.Errorf("add unmatched charge: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Open implements app.UnmatchedCharges.
func (r unmatchedCharges) Open(ctx context.Context, before time.Time, limit int) ([]app.UnmatchedCharge, error) {
	rows, _ := r.tx.Query(ctx, `
		SELECT tenant_id, intent_id, order_id, kind, amount, currency, key_generation FROM unmatched_charges
		WHERE returned_at IS NULL AND (kind = 'second_charge' OR created_at <= $1) ORDER BY created_at LIMIT $2`, before, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c app.UnmatchedCharge, err error) {
		err = row.Scan(&c.Ref.Tenant, &c.Intent.ID, &c.Ref.OrderID, &c.Kind, &c.Intent.Amount.Amount,
			&c.Intent.Amount.Currency, &c.KeyGeneration)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("list unmatched charges: %w", err)
	}
	return list, nil
}

// Returned implements app.UnmatchedCharges.
func (r unmatchedCharges) Returned(
	ctx context.Context, c app.UnmatchedCharge, refundID string, now time.Time,
) (bool, error) {
	tag, err := r.tx.Exec(ctx, `
		UPDATE unmatched_charges SET refund_id = $3, returned_at = $4
		WHERE tenant_id = $1 AND intent_id = $2 AND returned_at IS NULL`, c.Ref.Tenant, c.Intent.ID, refundID, now)
	if err != nil {
		return false, fmt.Errorf("note the return of a charge: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// Drop implements app.UnmatchedCharges.
func (r unmatchedCharges) Drop(ctx context.Context, c app.UnmatchedCharge) error {
	_, err := r.tx.Exec(ctx, `
		DELETE FROM unmatched_charges WHERE tenant_id = $1 AND intent_id = $2 AND returned_at IS NULL`, c.Ref.Tenant, c.Intent.ID)
	if err != nil {
		return fmt.Errorf("drop an unmatched charge: %w", err)
	}
	return nil
}

// NextKey implements app.UnmatchedCharges.
func (r unmatchedCharges) NextKey(ctx context.Context, c app.UnmatchedCharge) error {
	_, err := r.tx.Exec(ctx, `
		UPDATE unmatched_charges SET key_generation = $3 + 1
		WHERE tenant_id = $1 AND intent_id = $2 AND key_generation = $3`, c.Ref.Tenant, c.Intent.ID, c.KeyGeneration)
	if err != nil {
		return fmt.Errorf("advance the key of an unmatched charge: %w", err)
	}
	return nil
}

type watermarks struct{ tx pgx.Tx }

// everyTenant is the tenant_id of rows that belong to the whole provider account.
const everyTenant = ""

// Lock implements app.Watermarks. The first Save inserts the row. Before that there is no row to lock, and the primary
// key lets only one of two first runs succeed.
func (r watermarks) Lock(ctx context.Context, stream app.ProviderStream) (app.Watermark, error) {
	var from, next *time.Time
	w := app.Watermark{Stream: stream}
	err := r.tx.QueryRow(ctx, `
		SELECT from_at, next_at, after_id FROM reconcile_watermarks WHERE tenant_id = $1 AND stream = $2 FOR UPDATE`,
		everyTenant, stream).Scan(&from, &next, &w.After)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return w, fmt.Errorf("lock watermark: %w", err)
	}
	w.From, w.Next = instant(from), instant(next)
	return w, nil
}

// Save implements app.Watermarks.
func (r watermarks) Save(ctx context.Context, w app.Watermark, now time.Time) error {
	_, err := r.tx.Exec(ctx, `
		INSERT INTO reconcile_watermarks (tenant_id, stream, from_at, next_at, after_id, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, stream) DO UPDATE SET from_at = excluded.from_at, next_at = excluded.next_at,
			after_id = excluded.after_id, updated_at = excluded.updated_at`,
		everyTenant, w.Stream, nullable(w.From), nullable(w.Next), w.After, now)
	if err != nil {
		return fmt.Errorf("save watermark: %w", err)
	}
	return nil
}
