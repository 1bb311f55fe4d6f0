package app

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// returnUnmatched refunds at most limit charges that belong to no payment. A second charge of an order is refunded at
// once. A charge of an unknown order is refunded only after delay: by then its finding has alerted an operator, who can
// stop a service that is connected to the wrong database.
func (s *Service) returnUnmatched(ctx context.Context, limit int, delay time.Duration) (returned int, err error) {
	var list []UnmatchedCharge
	if err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		list, err = tx.Unmatched().Open(ctx, tx.Now().Add(-delay), limit)
		return err
	}); err != nil {
		return 0, err
	}
	var failed error
	for _, c := range list {
		done, err := s.returnCharge(ctx, c)
		if done {
			returned++
		}
		if failed == nil {
			failed = err
		}
		if ctx.Err() != nil || errors.Is(err, ErrProviderPaused) {
			break // a failure of one charge must not stop the others
		}
	}
	return returned, failed
}

// returnCharge reports whether the charge was refunded. The next run tries again if the provider refused, has not
// decided, or if the key has become unusable.
func (s *Service) returnCharge(ctx context.Context, c UnmatchedCharge) (bool, error) {
	if explained, err := s.explained(ctx, c); err != nil || explained {
		return false, err
	}
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	refund, err := s.refundUnmatched(asked, c)
	refused, isRefusal := errors.AsType[*RefusedError](err)
	switch {
	case isRefusal:
		s.monitor.Finding(ctx, FindingRefundRefused, c.Ref, refused.Code)
	case errors.Is(err, ErrMismatch):
		s.monitor.Finding(ctx, FindingMismatch, c.Ref, c.Intent.ID)
		return false, err
	case err != nil && !errors.Is(err, ErrKeyUnusable):
		return false, err
	case err == nil && refund.Status == domain.RefundPending:
		return false, nil
	case err == nil && refund.Status == domain.RefundFailed:
		s.monitor.Finding(ctx, FindingRefundFailed, c.Ref, refund.Failure)
	}
	succeeded := err == nil && refund.Status == domain.RefundSucceeded
	done := false
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		if succeeded {
			done, err = tx.Unmatched().Returned(ctx, c, refund.ID, tx.Now())
			return err
		}
		return tx.Unmatched().NextKey(ctx, c) // the key repeats its answer
	})
	if err != nil || !done {
		return false, err
	}
	s.monitor.Finding(ctx, FindingUnmatchedReturned, c.Ref, c.Intent.ID)
	return true, nil
}

// explained drops the charge of an unknown order that exists by now (it was restored), and enqueues settle-payment to
// handle it.
func (s *Service) explained(ctx context.Context, c UnmatchedCharge) (here bool, err error) {
	if c.Kind != FindingUnknownCharge {
		return false, nil
	}
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.Payments().ForUpdate(ctx, c.Ref.Tenant, c.Ref.OrderID)
		if here = err == nil; !here {
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			return err
		}
		if err := tx.Unmatched().Drop(ctx, c); err != nil {
			return err
		}
		return tx.Outbox().SettlePayment(ctx, c.Ref, c.Intent.ID)
	})
	return here, err
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
