package app

import (
	"context"
	"errors"
	"fmt"

	"example.com/orders/internal/domain"
)

// SettlePayment is the job behind a provider event, a cancellation and a difference that reconciliation found. What
// asked for it is only a hint: it retrieves the payment's objects from the provider and settles by the same code as
// charge-order and refund-charge, so a hint that is lost, late, doubled, reordered or false changes nothing.
// intentID names an intent to look at beside the payment's own; empty: none.
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
	// The other intent comes first: where it has charged, the payment's own must not be confirmed any more.
	if intentID != "" && intentID != payment.IntentID {
		if err := s.settleOther(ctx, asked, ref, payment, intentID); err != nil {
			return err
		}
	}
	payment, err := s.paymentNow(ctx, ref)
	if err == nil && payment.Status == domain.PaymentPending && payment.IntentID != "" {
		// Completing this job is left to the end.
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

// settleOther looks at an intent that is not the one that the payment has noted. Only one whose money moved matters.
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

// settleUnknown looks at an intent of an order that is not here, as after a restore from a backup.
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

// noteUnmatched notes a charge that no payment accounts for. It is found once, however often it is met.
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
