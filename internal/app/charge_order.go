package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/orders/internal/domain"
)

// ChargeOrder is the job behind a placed order. It brings the payment to the state that the provider decides:
//
//	look → create the intent, unconfirmed → commit its id → confirm it → record the outcome with the job's completion
//
// No transaction is open while the provider is asked. Every run that finds an intent retrieves it first and acts on its
// state, so running again at any point, twice at once too, is safe: the intent refuses a second confirmation.
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

// errUndecided ends a run whose intent the provider is still working on: the job looks again later.
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

// close completes the job where nothing is left to decide: the payment is settled, or the order was cancelled before an
// intent was known, so no money can move.
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

// neverAsked tells whether the order was cancelled before any call that can charge was possible.
func neverAsked(order domain.OrderStatus, p domain.PaymentState) bool {
	return order == domain.OrderCancelled && p.IntentID == "" && p.LegacyAttemptAt.IsZero()
}

// begin finds or creates the intent, commits its id and only then goes on to confirm it. A crash before the commit leaves
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

// findOrCreate creates the intent. Two payments are looked up first, since a key that the provider has pruned cannot
// protect them: one that is older than the provider's search lags (after a restore its intent may exist although it is
// not noted here), and one that the release before this one has asked for.
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
		return Intent{}, fmt.Errorf("an older release has asked: %w", errUndecided)
	}
	return c.provider.CreateIntent(ctx, intentRequest(seen.Payment))
}

// searchLag is the age from which the provider's search is believed to know an intent. Stripe states a minute, and up to
// an hour in an outage. Anything younger is protected by the idempotency key, which is kept for at least 24 hours.
const searchLag = 2 * time.Hour

// furthest is the intent whose money moved or is moving, else any that can still be confirmed, else the last one.
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

// note commits the intent's id. Where another run has noted one meanwhile, that one counts and this run ends; so it does
// where a worker of the release before this one has begun to ask meanwhile.
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

// errSuperseded ends a run whose payment another run, or a cancellation, has moved on. The next run sees how.
var errSuperseded = errors.New("payment was changed by another run")

// act does what the state of the intent asks for.
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

// decided tells whether the provider has said its last word. An intent is created with its payment method, so one that
// requires another has been declined.
func decided(status IntentStatus) bool {
	return status == IntentSucceeded || status == IntentCanceled || status == IntentRequiresPaymentMethod
}

// advance confirms the intent, or cancels it where the order is cancelled, a person would have to authenticate, or the
// provider has refused for too long. A refusal says only that this call did nothing: the intent's state, read again,
// says what is true.
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

// expired tells whether the provider has refused this charge for so long that it is given up.
func (c charge) expired(seen Look) bool {
	r := seen.Payment.Refusal
	return r.Code != "" && seen.Now.Sub(r.Since) > c.settings.RefusalLimit
}

// failed notes what the next run has to know of a failed call, and returns the error for the job.
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
		// The provider saves refusals under the key as well, so that the same key would not notice when the cause is gone.
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

// giveUp ends a charge that the provider refuses to begin: there is no intent, so no money can move.
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
