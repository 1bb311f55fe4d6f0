package app

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// returnUnmatched gives back, at most limit, charges that no payment accounts for. A second charge of an order goes back
// at once. One of an order that is not here waits for delay first: its finding has alerted a person by then, who can stop
// a service that was pointed at the wrong database.
func (s *Service) returnUnmatched(ctx context.Context, limit int, delay time.Duration) (returned int, err error) {
	var list []UnmatchedCharge
	if err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		list, err = tx.Unmatched().Open(ctx, tx.Now().Add(-delay), limit)
		return err
	}); err != nil {
		return 0, err
	}
	for _, c := range list {
		done, err := s.returnCharge(ctx, c)
		if err != nil {
			return returned, err
		}
		if done {
			returned++
		}
	}
	return returned, nil
}

// returnCharge tells whether the charge went back. It did not, and the next run tries again, where the provider refused
// or where the key has become unusable.
func (s *Service) returnCharge(ctx context.Context, c UnmatchedCharge) (done bool, err error) {
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	refund, err := s.refundUnmatched(asked, c)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		s.monitor.Finding(ctx, FindingRefundRefused, c.Ref, refused.Code)
		return false, nil
	}
	spent := errors.Is(err, ErrKeyUnusable)
	if err != nil && !spent {
		return false, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if spent {
			return tx.Unmatched().NextKey(ctx, c)
		}
		return tx.Unmatched().Returned(ctx, c, refund.ID, tx.Now())
	})
	if err == nil && !spent {
		s.monitor.Finding(ctx, FindingUnmatchedReturned, c.Ref, c.Intent.ID)
	}
	return err == nil && !spent, err
}

// refundUnmatched uses the protocol of refund-charge: it lists first, then creates under a key that the intent determines.
func (s *Service) refundUnmatched(ctx context.Context, c UnmatchedCharge) (ProviderRefund, error) {
	intent := IntentRequest{Ref: c.Ref, IntentID: c.Intent.ID, Amount: c.Intent.Amount}
	list, err := s.provider.ListRefunds(ctx, intent)
	if err != nil {
		return ProviderRefund{}, err
	}
	left := c.Intent.Amount
	for _, r := range list {
		if r.Status == domain.RefundFailed {
			continue
		}
		if left.Amount -= r.Amount.Amount; left.Amount <= 0 {
			return r, nil
		}
	}
	return s.provider.CreateRefund(ctx, RefundRequest{
		Ref: c.Ref, RefundID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("unmatched:"+c.Intent.ID)), IntentID: c.Intent.ID,
		Amount: left, Generation: c.KeyGeneration,
	})
}
