package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/orders/internal/domain"
)

// ChargeOrder is the job that charges a placed order. It records the outcome that the provider decides:
//
//	look → create the intent, unconfirmed → commit its id → confirm it → record the outcome with the job's completion
//
// No transaction is open during a call to the provider. A run that finds an intent retrieves it first and acts on its
// state. Running again at any point, or two runs at the same time, is safe: the provider refuses to confirm an intent
// twice.
//
// An error means that the job must run again: ErrNotFound before the order is visible, anything else while the provider
// has not decided.
func (s *Service) ChargeOrder(ctx context.Context, ref OrderRef, done Completion) error {
	asked, cancel := context.WithTimeout(ctx, s.settings.ProviderTimeout) // leaves time to record the answers
	defer cancel()
	c := charge{Service: s, ref: ref, done: done}
	if err := c.run(ctx, asked); err != nil {
		return fmt.Errorf("charge order: %w", err)
	}
	return nil
}

// charge is one run of the charge protocol for one order.
type charge struct {
	*Service
	ref  OrderRef
	done Completion
}

// intentRequest asks for the intent of a payment, with the key's generation that is due.
func intentRequest(p domain.PaymentState) IntentRequest {
	return IntentRequest{
		Ref: OrderRef{p.Tenant, p.OrderID}, IntentID: p.IntentID, Amount: p.Amount,
		PaymentMethod: p.PaymentMethod, Generation: p.KeyGeneration,
	}
}

// errUndecided ends a run whose intent the provider is still processing: the job retries later.
var errUndecided = errors.New("provider has not decided the charge yet")

// run calls the provider under asked, and the database under ctx.
func (c charge) run(ctx, asked context.Context) error {
	seen, err := c.reader.Look(ctx, c.ref)
	switch {
	case err != nil:
		return err
	case seen.Payment.Status != domain.PaymentPending, neverAsked(seen.Order.Status, seen.Payment):
		return c.close(ctx)
	case seen.Payment.IntentID == "":
		return c.begin(ctx, asked, seen)
	}
	intent, err := c.provider.RetrieveIntent(asked, intentRequest(seen.Payment))
	if err != nil {
		return c.failed(ctx, seen, err)
	}
	return c.act(ctx, asked, seen, intent)
}

// close completes the job when nothing is left to decide: the payment is settled, or the order was cancelled before an
// intent was created, so no money can move.
func (c charge) close(ctx context.Context) error {
	return c.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		order, payment, err := tx.Orders().WithPayment(ctx, c.ref.Tenant, c.ref.OrderID)
		if err != nil {
			return err
		}
		if payment.Settled() {
			return c.done(ctx, tx)
		}
		if !neverAsked(order.State().Status, payment.State()) {
			return errSuperseded
		}
		if err := payment.Cancel(tx.Now()); err != nil {
			return err
		}
		if err := tx.Payments().Save(ctx, payment); err != nil {
			return err
		}
		return c.done(ctx, tx)
	})
}

// neverAsked reports whether the order was cancelled before any call that could have charged it.
func neverAsked(order domain.OrderStatus, p domain.PaymentState) bool {
	return order == domain.OrderCancelled && p.IntentID == "" && p.LegacyAttemptAt.IsZero()
}

// begin finds or creates the intent and commits its id before it confirms the intent. A crash before the commit leaves
// an unconfirmed intent, which moves no money.
func (c charge) begin(ctx, asked context.Context, seen Look) error {
	intent, err := c.findOrCreate(asked, seen)
	if err != nil {
		return c.failed(ctx, seen, err)
	}
	if seen, err = c.note(ctx, seen, intent.ID); err != nil {
		return err
	}
	return c.act(ctx, asked, seen, intent)
}

// findOrCreate creates the intent. It searches the provider first in two cases, because the provider may have pruned
// the idempotency key: when the payment is older than searchLag (after a restore from backup its intent may exist at
// the provider and not here), and when the previous release has called the provider for it.
func (c charge) findOrCreate(ctx context.Context, seen Look) (Intent, error) {
	p, age := seen.Payment, seen.Now.Sub(seen.Payment.CreatedAt)
	if age > searchLag || !p.LegacyAttemptAt.IsZero() {
		found, err := c.provider.SearchIntents(ctx, intentRequest(seen.Payment))
		if err != nil {
			return Intent{}, err
		}
		if len(found) > 0 {
			return furthest(found), nil
		}
	}
	if !p.LegacyAttemptAt.IsZero() && seen.Now.Sub(p.LegacyAttemptAt) < searchLag {
		return Intent{}, fmt.Errorf("an older release has called the provider: %w", errUndecided)
	}
	return c.provider.CreateIntent(ctx, intentRequest(seen.Payment))
}

// searchLag is the age from which the provider's search finds an intent. Stripe states a minute, and up to an hour in
// an outage. Anything younger is protected by the idempotency key, which is kept for at least 24 hours.
const searchLag = 2 * time.Hour

// furthest picks the intent whose money moved or is moving, else one that can still be confirmed, else the last one.
func furthest(found []Intent) Intent {
	rank := map[IntentStatus]int{IntentSucceeded: 3, IntentProcessing: 2, IntentRequiresConfirmation: 1}
	best := found[0]
	for _, i := range found[1:] {
		if rank[i.Status] > rank[best.Status] {
			best = i
		}
	}
	return best
}

// note commits the intent's id. If another run has committed an id meanwhile, or a worker of the previous release has
// called the provider, this run ends with errSuperseded.
func (c charge) note(ctx context.Context, before Look, intentID string) (seen Look, err error) {
	err = c.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		order, payment, err := tx.Orders().AsSeen(ctx, before)
		if err != nil {
			return err
		}
		p := payment.State()
		switch {
		case payment.Settled() || p.IntentID != "" && p.IntentID != intentID,
			!p.LegacyAttemptAt.Equal(before.Payment.LegacyAttemptAt):
			return errSuperseded
		case p.IntentID == "":
			if err := payment.NoteIntent(intentID, tx.Now()); err != nil {
				return err
			}
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
		}
		seen = before
		seen.Order, seen.Payment = order.State(), payment.State()
		return nil
	})
	return seen, err
}

// errSuperseded ends a run whose payment was changed by another run or a cancellation. The next run reads the new
// state.
var errSuperseded = errors.New("payment was changed by another run")

// act takes the next step for the intent's status.
func (c charge) act(ctx, asked context.Context, seen Look, intent Intent) error {
	if open(intent.Status) {
		advanced, err := c.advance(ctx, asked, seen, intent)
		if err != nil {
			return c.failed(ctx, seen, err)
		}
		intent = advanced
	}
	if !decided(intent.Status) {
		return fmt.Errorf("intent is %s: %w", intent.Status, errUndecided)
	}
	return c.record(ctx, seen, intent)
}

func open(status IntentStatus) bool {
	return status == IntentRequiresConfirmation || status == IntentRequiresAction
}

// decided reports whether the intent's status is final. An intent is created with a payment method, so one that
// requires a payment method has been declined.
func decided(status IntentStatus) bool {
	return status == IntentSucceeded || status == IntentCanceled || status == IntentRequiresPaymentMethod
}

// advance confirms the intent, or cancels it where the order is cancelled, a person would have to authenticate, or the
// provider has refused for too long. A refusal means only that this call did nothing; the intent's status is then read
// again.
func (c charge) advance(ctx, asked context.Context, seen Look, intent Intent) (Intent, error) {
	call := c.provider.ConfirmIntent
	if seen.Order.Status == domain.OrderCancelled || intent.Status == IntentRequiresAction || c.expired(seen) {
		call = c.provider.CancelIntent
	}
	request := intentRequest(seen.Payment)
	answer, err := call(asked, request)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		answer, err = c.provider.RetrieveIntent(asked, request)
		if err == nil && open(answer.Status) {
			return Intent{}, refused
		}
	}
	return answer, err
}

// expired reports whether the provider has refused this charge for longer than the refusal limit.
func (c charge) expired(seen Look) bool {
	r := seen.Payment.Refusal
	return r.Code != "" && seen.Now.Sub(r.Since) > c.settings.RefusalLimit
}

// failed stores what the next run needs to know about a failed call, and returns the job's error.
func (c charge) failed(ctx context.Context, seen Look, cause error) error {
	if errors.Is(cause, ErrMismatch) {
		c.monitor.Finding(ctx, FindingMismatch, c.ref, seen.Payment.IntentID)
	}
	refused, isRefusal := errors.AsType[*RefusedError](cause)
	if !isRefusal && !errors.Is(cause, ErrKeyUnusable) {
		return cause
	}
	gaveUp := false
	err := c.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		order, payment, err := tx.Orders().WithPayment(ctx, c.ref.Tenant, c.ref.OrderID)
		if err != nil || payment.Settled() || payment.State().IntentID != seen.Payment.IntentID {
			return err
		}
		if gaveUp = isRefusal && seen.Payment.IntentID == "" && c.expired(seen); gaveUp {
			return c.giveUp(ctx, tx, order, payment)
		}
		if isRefusal {
			payment.Refuse(refused.Code, tx.Now())
		}
		// The provider replays a saved refusal under the same key, so a later attempt needs a new key.
		payment.NextKey(seen.Payment.KeyGeneration, tx.Now())
		return tx.Payments().Save(ctx, payment)
	})
	if isRefusal && refused.Code != seen.Payment.Refusal.Code { // once for each reason, not for each attempt
		c.monitor.Finding(ctx, FindingChargeRefused, c.ref, refused.Code)
	}
	if err == nil && gaveUp {
		return nil
	}
	return errors.Join(cause, err)
}

// giveUp fails a payment for which the provider refuses to create an intent: without an intent no money can move.
func (c charge) giveUp(ctx context.Context, tx Tx, order *domain.Order, payment *domain.Payment) error {
	if err := c.fail(ctx, tx, order, payment); err != nil {
		return err
	}
	return c.done(ctx, tx)
}

// record settles order and payment by the intent's state, in the transaction that completes the job.
func (c charge) record(ctx context.Context, seen Look, intent Intent) error {
	var found []finding
	err := c.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		order, payment, err := tx.Orders().AsSeen(ctx, seen)
		if err != nil {
			return err
		}
		if found, err = c.settle(ctx, tx, order, payment, intent); err != nil {
			return err
		}
		return c.done(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("record charge: %w", err)
	}
	c.report(ctx, c.ref, found)
	return nil
}
