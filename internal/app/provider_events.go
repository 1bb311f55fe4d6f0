package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// ReceiveProviderEvent is the use case receive-provider-event. It stores the event's id and enqueues settle-payment in
// one transaction; a repeated delivery does neither. An event that belongs to no order of this service is accepted and
// ignored, because the provider would redeliver a refused one. Disputes are counted once.
func (s *Service) ReceiveProviderEvent(ctx context.Context, e ProviderEvent) error {
	ours := e.Ref.OrderID != uuid.Nil
	if !ours && !e.Dispute {
		return nil
	}
	fresh := false
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		fresh, err = tx.Inbox().Add(ctx, e, tx.Now(), tx.Now().Add(s.settings.EventRetention))
		if err != nil || !fresh || !ours {
			return err
		}
		return tx.Outbox().SettlePayment(ctx, e.Ref, e.IntentID)
	})
	if err != nil {
		return fmt.Errorf("receive provider event: %w", err)
	}
	if fresh && e.Dispute {
		s.monitor.Finding(ctx, FindingDispute, e.Ref, e.ID)
	}
	return nil
}
