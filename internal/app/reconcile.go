package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// ReconcileLimits bounds one run of reconcile-payments.
type ReconcileLimits struct {
	Age     time.Duration // how long a charge or refund may be undecided without a job before it gets another
	Orphans int           // charges and refunds that get a job again
	Pages   int           // pages that are read of each provider stream, of 100 objects each
	Returns int           // unmatched charges that are refunded
	// ReturnAfter is the time between the alert about a charge of an unknown order and its refund.
	ReturnAfter time.Duration
}

// Reconciled is what one run did.
type Reconciled struct {
	Enqueued int // charges and refunds that got a job again
	Compared int // objects of the provider that were compared
	Differed int // objects that differed, for which settle-payment was enqueued
	Returned int // unmatched charges that were refunded
}

// ReconcilePayments repairs what outbox and events have missed. It enqueues a job for every undecided charge or refund
// that has none. It compares the provider's objects since a stored watermark with the payments, and enqueues
// settle-payment for each difference. It refunds charges that belong to no payment. Every step is bounded; the next run
// continues where this one ended.
func (s *Service) ReconcilePayments(ctx context.Context, l ReconcileLimits, done Completion) (r Reconciled, err error) {
	if r.Enqueued, err = s.enqueueOrphans(ctx, l); err != nil {
		return r, fmt.Errorf("enqueue orphans: %w", err)
	}
	for _, stream := range []ProviderStream{StreamIntents, StreamRefunds, StreamEvents} {
		for range l.Pages {
			more, err := s.comparePage(ctx, stream, &r)
			if err != nil {
				return r, fmt.Errorf("compare %s: %w", stream, err)
			}
			if !more {
				break
			}
		}
	}
	if r.Returned, err = s.returnUnmatched(ctx, l.Returns, l.ReturnAfter); err != nil {
		return r, fmt.Errorf("return unmatched charges: %w", err)
	}
	return r, s.store.InTx(ctx, done)
}

func (s *Service) enqueueOrphans(ctx context.Context, l ReconcileLimits) (n int, err error) {
	err = s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		orphans, err := tx.Outbox().Orphans(ctx, tx.Now().Add(-l.Age), l.Orphans)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			if err := enqueueAgain(ctx, tx.Outbox(), o); err != nil {
				return err
			}
		}
		n = len(orphans)
		return nil
	})
	return n, err
}

func enqueueAgain(ctx context.Context, outbox Outbox, o Orphan) error {
	if o.Refund != uuid.Nil {
		return outbox.RefundCharge(ctx, o.Ref, o.Refund)
	}
	return outbox.ChargeOrder(ctx, o.Ref)
}

// pageSize is the provider's maximum page size.
const pageSize = 100

// comparePage compares one page of a stream and moves the watermark in a transaction of its own. The provider lists the
// newest first, so the watermark moves only once a whole pass has reached the old one; it becomes the time of the
// newest object of the pass's first page, by the provider's own clock.
func (s *Service) comparePage(ctx context.Context, stream ProviderStream, r *Reconciled) (more bool, err error) {
	var w Watermark
	if err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
		w, err = tx.Watermarks().Lock(ctx, stream)
		return err
	}); err != nil {
		return false, err
	}
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout)
	defer cancel()
	page, err := s.provider.List(asked, ProviderQuery{Stream: stream, From: w.From, After: w.After, Limit: pageSize})
	if refused, ok := errors.AsType[*RefusedError](err); ok && w.After != "" {
		// The provider no longer knows the cursor: the next run starts the pass again.
		return false, errors.Join(refused, s.saveWatermark(ctx, w, Watermark{Stream: stream, From: w.From}))
	}
	if err != nil {
		return false, err
	}
	differed, err := s.compare(ctx, page.Objects)
	if err != nil {
		return false, err
	}
	r.Compared += len(page.Objects)
	r.Differed += differed
	return page.More, s.moveWatermark(ctx, w, page)
}

// moveWatermark records that a page was compared.
func (s *Service) moveWatermark(ctx context.Context, seen Watermark, page ProviderPage) error {
	next := seen
	if seen.After == "" {
		next.Next = page.Newest
	}
	next.After = page.Last
	if !page.More {
		next.After, next.From, next.Next = "", latest(next.Next, seen.From), time.Time{}
	}
	return s.saveWatermark(ctx, seen, next)
}

// saveWatermark does nothing where another run has moved the watermark since it was seen.
func (s *Service) saveWatermark(ctx context.Context, seen, next Watermark) error {
	return s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		stored, err := tx.Watermarks().Lock(ctx, seen.Stream)
		if err != nil || stored != seen {
			return err
		}
		return tx.Watermarks().Save(ctx, next, tx.Now())
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// compare enqueues settle-payment for every object that differs from the stored payment.
func (s *Service) compare(ctx context.Context, objects []ProviderObject) (differed int, err error) {
	for _, o := range objects {
		if o.Ref.OrderID == uuid.Nil {
			continue // not made by this service
		}
		var enqueued bool
		err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
			enqueued = false
			p, err := tx.Payments().ForUpdate(ctx, o.Ref.Tenant, o.Ref.OrderID)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if p != nil && agrees(p, o) || p == nil && !o.moved() {
				return nil
			}
			enqueued = true
			return tx.Outbox().SettlePaymentOnce(ctx, o.Ref, o.intentID())
		})
		if err != nil {
			return differed, err
		}
		if enqueued {
			differed++
		}
	}
	return differed, nil
}

// moved reports whether money moved by an object.
func (o ProviderObject) moved() bool { return o.Intent != nil && o.Intent.Status == IntentSucceeded }

func (o ProviderObject) intentID() string {
	switch {
	case o.Intent != nil:
		return o.Intent.ID
	case o.Refund != nil:
		return o.Refund.IntentID
	default:
		return o.Charge.IntentID
	}
}

// agrees reports whether a payment matches the provider's object. The object may be older than the payment, so only
// differences that can still change the payment count.
func agrees(payment *domain.Payment, o ProviderObject) bool {
	p := payment.State()
	switch {
	case o.Intent != nil && o.Intent.Status == IntentSucceeded:
		return p.Status == domain.PaymentSucceeded && p.IntentID == o.Intent.ID && p.Amount == o.Intent.Amount
	case o.Intent != nil:
		return payment.Settled() || !decided(o.Intent.Status) || p.IntentID != o.Intent.ID
	case o.intentID() != p.IntentID:
		return true // its intent says what it has to say
	case o.Charge != nil:
		return o.Charge.Refunded.Amount <= p.RefundedThere().Amount
	}
	known, here := payment.Refund(o.Refund.localID())
	if !here {
		return o.Refund.Status == domain.RefundFailed
	}
	return known.Status == o.Refund.Status && known.Amount == o.Refund.Amount || o.Refund.Status == domain.RefundPending
}
