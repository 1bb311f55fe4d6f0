package app

import (
	"context"
	"errors"
	"fmt"

	"example.com/orders/internal/domain"
)

// SettlePayment is the job that a provider event, a cancellation, or a difference found by reconciliation enqueues. It
// treats its arguments as a hint: it retrieves the payment's objects from the provider and settles them with the same
// code as charge-order and refund-charge. So lost, late, repeated, reordered or forged events cannot corrupt a payment.
// intentID names another intent to retrieve beside the payment's own; empty: none.
func (s *Service) SettlePayment(ctx context.Context, ref OrderRef, intentID string, done Completion) error {
	payment, err := s.paymentNow(ctx, ref)
	if errors.Is(err, ErrNotFound) && intentID != "" {
		err = s.settleUnknown(ctx, ref, intentID, done)
	} else if err == nil {
		err = s.settleKnown(ctx, ref, payment, intentID, done)
	}
	if err != nil {
		return fmt.Errorf("settle payment: %w", err)
	}
	return nil
}

func (s *Service) settleKnown(
	ctx context.Context, ref OrderRef, payment domain.PaymentState, intentID string, done Completion,
) error {
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	// The other intent comes first: if it has charged, the payment's own must no longer be confirmed.
	if intentID != "" && intentID != payment.IntentID {
		if err := s.settleOther(ctx, asked, ref, payment, intentID); err != nil {
			return err
		}
	}
	payment, err := s.paymentNow(ctx, ref)
	if err == nil && payment.Status == domain.PaymentPending && payment.IntentID != "" {
		// The job is completed in the last transaction only.
		if err := (charge{Service: s, ref: ref, done: notYet}).run(ctx, asked); err != nil {
			return err
		}
		payment, err = s.paymentNow(ctx, ref)
	}
	if err != nil {
		return err
	}
	var refunds []ProviderRefund
	if payment.Status == domain.PaymentSucceeded {
		if refunds, err = s.provider.ListRefunds(asked, intentRequest(payment)); err != nil {
			return err
		}
	}
	return s.settleRefunds(ctx, ref, refunds, done)
}

// settleOther handles an intent that is not the payment's own. Only an intent whose money moved matters.
func (s *Service) settleOther(
	ctx, asked context.Context, ref OrderRef, payment domain.PaymentState, intentID string,
) error {
	request := intentRequest(payment)
	request.IntentID = intentID
	intent, err := s.retrieveHinted(ctx, asked, request)
	if err != nil || intent.Status != IntentSucceeded {
		return err
	}
	return charge{Service: s, ref: ref, done: notYet}.record(ctx, Look{Payment: payment}, intent)
}

// settleUnknown handles an intent of an order that is missing in the database, as after a restore from backup.
func (s *Service) settleUnknown(ctx context.Context, ref OrderRef, intentID string, done Completion) error {
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	intent, err := s.retrieveHinted(ctx, asked, IntentRequest{Ref: ref, IntentID: intentID})
	if err != nil {
		return err
	}
	var found []finding
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		found = nil
		if intent.Status == IntentSucceeded {
			found, err = s.noteUnmatched(ctx, tx, UnmatchedCharge{
				Ref: ref, Intent: intent, Kind: FindingUnknownCharge, KeyGeneration: 1,
			})
		}
		if err != nil {
			return err
		}
		return done(ctx, tx)
	})
	if err == nil {
		s.report(ctx, ref, found)
	}
	return err
}

// noteUnmatched stores a charge that belongs to no payment. The finding is reported only the first time.
func (s *Service) noteUnmatched(ctx context.Context, tx Tx, c UnmatchedCharge) ([]finding, error) {
	fresh, err := tx.Unmatched().Add(ctx, c, tx.Now())
	if err != nil || !fresh {
		return nil, err
	}
	return []finding{{c.Kind, c.Intent.ID}}, nil
}

// retrieveHinted retrieves the intent that a hint names. A hint that names another order's intent is reported.
func (s *Service) retrieveHinted(ctx, asked context.Context, r IntentRequest) (Intent, error) {
	intent, err := s.provider.RetrieveIntent(asked, r)
	if errors.Is(err, ErrMismatch) {
		s.monitor.Finding(ctx, FindingMismatch, r.Ref, r.IntentID)
	}
	return intent, err
}

// paymentNow reads a payment in a transaction of its own.
func (s *Service) paymentNow(ctx context.Context, ref OrderRef) (p domain.PaymentState, err error) {
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
		if err == nil {
			p = payment.State()
		}
		return err
	})
	return p, err
}

// notYet completes nothing: a later step of the same run completes the job.
func notYet(context.Context, Tx) error { return nil }
