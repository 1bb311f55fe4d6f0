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
			break // what fails for one charge alone must not keep the others here
		}
	}
	return returned, failed
}

// returnCharge tells whether the charge went back. It did not, and the next run tries again, where the provider refused,
// has not decided, or where the key has become unusable.
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

// explained drops the charge of an unknown order that is here by now (it was brought back from elsewhere), and lets
// settle-payment decide what the charge is.
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
