package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// RefundCharge is the job that makes a refund at the provider:
//
//	load, noting that the provider is asked → unless this is the first attempt at a young refund, list the intent's refunds
//	and look for this one → create it → record the outcome with the job's completion
//
// An error means that the job must run again. Running it again at any point, or two runs at the same time, is safe: the
// list does not lag behind writes, and concurrent attempts send the same idempotency key.
func (s *Service) RefundCharge(ctx context.Context, ref OrderRef, id uuid.UUID, done Completion) error {
	r := refunding{Service: s, ref: ref, id: id, done: done}
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("refund charge: %w", err)
	}
	return nil
}

// refunding is one run of the refund protocol.
type refunding struct {
	*Service
	ref  OrderRef
	id   uuid.UUID
	done Completion
}

// refundLook is a refund as one transaction read it.
type refundLook struct {
	payment domain.PaymentState
	refund  domain.Refund
	now     time.Time // the database's
	first   bool      // no call for this refund has been made
}

func (l refundLook) request() RefundRequest {
	return RefundRequest{
		Ref: OrderRef{l.payment.Tenant, l.payment.OrderID}, RefundID: l.refund.ID, IntentID: l.payment.IntentID,
		Amount: l.refund.Amount, Generation: l.refund.KeyGeneration,
	}
}

func (r refunding) run(ctx context.Context) error {
	seen, settled, err := r.load(ctx)
	if err != nil || settled {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, r.settings.ProviderTimeout)
	defer cancel()
	answer, err := r.ask(asked, seen)
	if err != nil {
		return r.failed(ctx, asked, seen, err)
	}
	if answer.Status == domain.RefundPending {
		return errUndecided
	}
	return r.record(ctx, answer)
}

func (r refunding) load(ctx context.Context) (seen refundLook, settled bool, err error) {
	err = r.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		payment, err := tx.Payments().ForUpdate(ctx, r.ref.Tenant, r.ref.OrderID)
		if err != nil {
			return err
		}
		refund, ok := payment.Refund(r.id)
		if !ok {
			return fmt.Errorf("refund %s: %w", r.id, ErrNotFound)
		}
		if settled = refund.Status != domain.RefundPending; settled {
			return r.done(ctx, tx)
		}
		first := payment.StartRefund(r.id, tx.Now())
		refund, _ = payment.Refund(r.id)
		seen = refundLook{payment.State(), refund, tx.Now(), first}
		if !first {
			return nil
		}
		return tx.Payments().Save(ctx, payment)
	})
	return seen, settled, err
}

// ask finds the refund at the provider, or creates it. After a restore from backup an old refund can look as if it had
// never been requested, and the provider may have pruned its key.
func (r refunding) ask(ctx context.Context, seen refundLook) (ProviderRefund, error) {
	if !seen.first || seen.now.Sub(seen.refund.CreatedAt) > searchLag {
		found, ok, err := r.find(ctx, seen)
		if err != nil || ok {
			return found, err
		}
		if since := seen.now.Sub(seen.refund.KeyFailedAt); since < r.settings.ProviderLag {
			return ProviderRefund{}, fmt.Errorf("provider failed %s ago: %w", since.Round(time.Second), errUndecided)
		}
	}
	return r.provider.CreateRefund(ctx, seen.request())
}

// find searches the intent's refunds for this one.
func (r refunding) find(ctx context.Context, seen refundLook) (ProviderRefund, bool, error) {
	list, err := r.provider.ListRefunds(ctx, intentRequest(seen.payment))
	i := slices.IndexFunc(list, func(f ProviderRefund) bool { return f.localID() == r.id })
	if err != nil || i < 0 {
		return ProviderRefund{}, false, err
	}
	return list[i], true, nil
}

// failed stores what the next run needs to know about a failed call, and returns the job's error. A refund that the
// provider refuses permanently, or has refused for too long, becomes failed.
func (r refunding) failed(ctx, asked context.Context, seen refundLook, cause error) error {
	if errors.Is(cause, ErrMismatch) {
		r.monitor.Finding(ctx, FindingMismatch, r.ref, r.id.String())
	}
	refused, isRefusal := errors.AsType[*RefusedError](cause)
	if !isRefusal && !errors.Is(cause, ErrKeyUnusable) {
		return cause
	}
	if isRefusal && (refused.Final || r.expired(seen)) {
		return r.refused(ctx, asked, seen, refused)
	}
	err := r.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		payment, err := tx.Payments().ForUpdate(ctx, r.ref.Tenant, r.ref.OrderID)
		if err != nil {
			return err
		}
		if isRefusal {
			payment.RefuseRefund(r.id, refused.Code, tx.Now())
		}
		payment.NextRefundKey(r.id, seen.refund.KeyGeneration, tx.Now()) // refusals are saved under the key as well
		return tx.Payments().Save(ctx, payment)
	})
	if isRefusal && refused.Code != seen.refund.Refusal.Code { // once for each reason, not for each attempt
		r.monitor.Finding(ctx, FindingRefundRefused, r.ref, refused.Code)
	}
	return errors.Join(cause, err)
}

// refused fails a refund that the provider refuses. The provider may refuse it because the money was already returned
// by a refund that is missing in the database, as after a restore from backup. That refund could not be adopted while
// this one reserved the balance.
func (r refunding) refused(ctx, asked context.Context, seen refundLook, cause *RefusedError) error {
	others, err := r.provider.ListRefunds(asked, intentRequest(seen.payment))
	made := slices.ContainsFunc(others, func(f ProviderRefund) bool { return f.localID() == r.id })
	if err != nil || made { // the next run finds it
		return errors.Join(cause, err)
	}
	failed := ProviderRefund{
		RefundID: r.id, Amount: seen.refund.Amount, Status: domain.RefundFailed, Failure: cause.Code,
	}
	return r.settleRefunds(ctx, r.ref, append([]ProviderRefund{failed}, others...), r.done)
}

func (r refunding) expired(seen refundLook) bool {
	refusal := seen.refund.Refusal
	return refusal.Code != "" && seen.now.Sub(refusal.Since) > r.settings.RefusalLimit
}

func (r refunding) record(ctx context.Context, answer ProviderRefund) error {
	return r.settleRefunds(ctx, r.ref, []ProviderRefund{answer}, r.done)
}

// settleRefunds copies the provider's state of refunds to the payment. Jobs, events and reconciliation all call it. It
// is idempotent.
func (s *Service) settleRefunds(ctx context.Context, ref OrderRef, list []ProviderRefund, done Completion) error {
	var found []finding
	err := s.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		found = nil
		payment, err := tx.Payments().ForUpdate(ctx, ref.Tenant, ref.OrderID)
		if err != nil {
			return err
		}
		changed := false
		for _, f := range list {
			did, what := settleRefund(payment, f, tx.Now())
			changed = changed || did
			found = append(found, what...)
		}
		if changed {
			if err := tx.Payments().Save(ctx, payment); err != nil {
				return err
			}
		}
		return done(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("record refunds: %w", err)
	}
	s.report(ctx, ref, found)
	return nil
}

// settleRefund copies the provider's state of one refund to the payment:
//
//	provider \ here   unknown                            pending             succeeded            failed
//	pending           adopted, where it fits             –                   –                    –
//	succeeded         adopted, where it fits             succeeded           –                    succeeded, where it fits
//	failed            –                                  failed, alerted     failed, alerted      –
//
// A refund that does not fit the payment (another amount, more than the balance) is not changed and raises an alert.
func settleRefund(p *domain.Payment, f ProviderRefund, now time.Time) (changed bool, found []finding) {
	known, here := p.Refund(f.localID())
	switch {
	case !here:
		return adoptRefund(p, f, now)
	case f.Amount != known.Amount:
		return false, []finding{{FindingRefundUnexplained, f.ID}}
	case f.Status == known.Status || f.Status == domain.RefundPending:
		return p.IdentifyRefund(known.ID, f.ID, now), nil
	}
	if err := p.SettleRefund(known.ID, f.Status, f.ID, now); err != nil {
		return false, []finding{{FindingRefundUnexplained, f.ID}}
	}
	switch {
	case f.Status == domain.RefundSucceeded && known.Status == domain.RefundFailed:
		found = []finding{{FindingRefundAdopted, f.ID}}
	case f.Status == domain.RefundFailed && known.Status == domain.RefundSucceeded:
		found = []finding{{FindingRefundFailedLate, f.Failure}}
	case f.Status == domain.RefundFailed:
		found = []finding{{FindingRefundFailed, f.Failure}}
	}
	return true, found
}

func adoptRefund(p *domain.Payment, f ProviderRefund, now time.Time) (changed bool, found []finding) {
	if f.Status == domain.RefundFailed {
		return false, nil // it moved no money
	}
	err := p.AdoptRefund(domain.Refund{
		ID: f.localID(), Amount: f.Amount, Status: f.Status, Reason: "made at the payment provider", ProviderID: f.ID,
		KeyGeneration: 1, CreatedAt: now,
	})
	if err != nil {
		return false, []finding{{FindingRefundUnexplained, f.ID}}
	}
	return true, []finding{{FindingRefundAdopted, f.ID}}
}

// localID is the refund's id in this service: from its metadata, or, for a refund that was made by hand, derived from
// the provider's id.
func (f ProviderRefund) localID() uuid.UUID {
	if f.RefundID != uuid.Nil {
		return f.RefundID
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("provider-refund:"+f.ID))
}
