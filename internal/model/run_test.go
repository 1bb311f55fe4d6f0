package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// run is a job at work: what it has learned so far. Its code is deterministic, so that is all of its state.
type run struct {
	job     job
	history []learned
}

// learned is one transaction or one answer of the provider.
type learned struct {
	seen  *database // before the transaction
	stale *domain.OrderState
	err   error
	answer
	intents []app.Intent
	refunds []app.ProviderRefund
	text    string // its canonical encoding
}

// exec runs a job's use case from its start: what it has learned is repeated to it, then one more transaction or call
// happens in the world, and at the next one it stops.
type exec struct {
	app.PaymentProvider // List
	app.Reader          // Look

	w        *world
	slot     int
	run      run
	at       int
	choice   outcome // of the one new call
	fallible bool    // it was a call that can have another outcome
	moved    bool
	did      string
	atOnce   bool // all of the use case is one step
	planted  fault
}

type stopped struct{}

// next is what was learned at this point before, or nil where it happens now.
func (x *exec) next(what string) *learned {
	if x.at < len(x.run.history) {
		x.at++
		return &x.run.history[x.at-1]
	}
	if x.moved && !x.atOnce {
		panic(stopped{})
	}
	x.moved, x.did = true, what
	return nil
}

func (x *exec) learn(l learned) {
	if !x.atOnce {
		x.run.history = append(slices.Clone(x.run.history), l)
		x.at++
	}
}

// InTx implements app.Store. A transaction is one step: it locks what it reads.
func (x *exec) InTx(ctx context.Context, fn func(context.Context, app.Tx) error) error {
	if l := x.next("transaction"); l != nil {
		return fn(ctx, &tx{db: l.seen.clone(), stale: l.stale})
	}
	seen := x.w.db.clone()
	t := &tx{db: x.w.db.clone()}
	if x.planted == staleOrder && len(x.run.history) > 0 {
		t.stale = &x.run.history[0].seen.order
	}
	err := fn(ctx, t)
	switch {
	case err != nil:
	case x.planted == idNotDurable && seen.payment.IntentID == "" && t.db.payment.Status == domain.PaymentPending:
		// The commit of the intent's id is answered, and does not last.
	default:
		t.db.nameRefunds()
		x.w.db = t.db
	}
	x.learn(learned{seen: &seen, stale: t.stale, text: "tx " + seen.essence()})
	return err
}

// Look implements app.Reader.
func (x *exec) Look(context.Context, app.OrderRef) (app.Look, error) {
	seen := x.w.db.clone()
	if l := x.next("look"); l != nil {
		seen = *l.seen
	} else {
		x.learn(learned{seen: &seen, text: "look " + seen.essence()})
	}
	return app.Look{Order: seen.order, Payment: seen.payment, Now: now}, nil
}

// InKeyedTx implements app.Store.
func (x *exec) InKeyedTx(ctx context.Context, _ app.KeyScope, fn func(context.Context, app.Tx) error) error {
	return x.InTx(ctx, fn)
}

// done implements app.Completion: the job ends with the transaction, unless another run has it.
func (x *exec) done(_ context.Context, t app.Tx) error {
	db := &t.(*tx).db
	i := slices.IndexFunc(db.jobs, func(j job) bool { return j.owner == x.slot })
	if i < 0 {
		return errLost
	}
	db.jobs = slices.Delete(db.jobs, i, i+1)
	return nil
}

func (x *exec) call(c call, generation int) answer {
	c.key = fmt.Sprintf("%s %s %d", c.what, c.refund, generation)
	if l := x.next(c.what); l != nil {
		return l.answer
	}
	x.fallible = true
	a := x.w.stripe.answer(c, x.choice, x.planted == freshKeys)
	x.learn(learned{answer: a, text: fmt.Sprint(c.key, a.intent, a.refund.ID, a.err)})
	return a
}

// CreateIntent implements app.PaymentProvider.
func (x *exec) CreateIntent(_ context.Context, r app.IntentRequest) (app.Intent, error) {
	a := x.call(call{what: "create", amount: r.Amount}, r.Generation)
	return a.intent, a.err
}

// ConfirmIntent implements app.PaymentProvider.
func (x *exec) ConfirmIntent(_ context.Context, r app.IntentRequest) (app.Intent, error) {
	a := x.call(call{what: "confirm", intent: r.IntentID}, r.Generation)
	return a.intent, a.err
}

// CancelIntent implements app.PaymentProvider.
func (x *exec) CancelIntent(_ context.Context, r app.IntentRequest) (app.Intent, error) {
	a := x.call(call{what: "cancel", intent: r.IntentID}, r.Generation)
	return a.intent, a.err
}

// CreateRefund implements app.PaymentProvider.
func (x *exec) CreateRefund(_ context.Context, r app.RefundRequest) (app.ProviderRefund, error) {
	a := x.call(call{what: "refund", intent: r.IntentID, refund: r.RefundID, amount: r.Amount}, r.Generation)
	return a.refund, a.err
}

// objects is where reads are answered from.
func (x *exec) objects() *stripe {
	if x.run.job.told != nil {
		return x.run.job.told
	}
	return &x.w.stripe
}

// RetrieveIntent implements app.PaymentProvider.
func (x *exec) RetrieveIntent(_ context.Context, r app.IntentRequest) (app.Intent, error) {
	if l := x.next("retrieve"); l != nil {
		return l.intent, l.err
	}
	i, err := x.objects().retrieve(r.IntentID)
	x.learn(learned{answer: answer{intent: i}, err: err, text: fmt.Sprint("retrieve", i)})
	return i, err
}

// SearchIntents implements app.PaymentProvider.
func (x *exec) SearchIntents(context.Context, app.IntentRequest) ([]app.Intent, error) {
	if l := x.next("search"); l != nil {
		return l.intents, nil
	}
	found := x.w.stripe.search()
	x.learn(learned{intents: found, text: fmt.Sprint("search", found)})
	return found, nil
}

// ListRefunds implements app.PaymentProvider.
func (x *exec) ListRefunds(_ context.Context, r app.IntentRequest) ([]app.ProviderRefund, error) {
	if l := x.next("list"); l != nil {
		return l.refunds, nil
	}
	found := x.objects().list(r.IntentID)
	if x.planted == noListing && x.run.job.kind == "refund-charge" {
		found = nil
	}
	x.learn(learned{refunds: found, text: fmt.Sprint("list", found)})
	return found, nil
}

// List implements app.PaymentProvider, for reconcile-payments: it lists what was created or changed since it was
// compared, which the provider's streams of objects and of events say together.
func (x *exec) List(_ context.Context, q app.ProviderQuery) (page app.ProviderPage, err error) {
	add := func(object string, o app.ProviderObject) {
		if slices.Contains(x.w.db.compared, object) {
			return
		}
		o.Ref = app.OrderRef{Tenant: tenant, OrderID: x.w.db.order.ID}
		page.Objects = append(page.Objects, o)
		x.w.db.compared = append(x.w.db.compared, object)
	}
	switch q.Stream {
	case app.StreamIntents:
		for _, i := range x.w.stripe.intents {
			add(fmt.Sprint(i.ID, i.Status), app.ProviderObject{Intent: &i.Intent})
		}
	case app.StreamRefunds:
		for _, r := range x.w.stripe.refunds {
			add(fmt.Sprint(r.ID, r.Status), app.ProviderObject{Refund: &r})
		}
	case app.StreamEvents:
	}
	return page, nil
}

// service is the use cases, with this run as their store and provider.
func (x *exec) service() *app.Service {
	s := settings
	if x.planted == noLag {
		s.ProviderLag = 0
	}
	return app.New(x, x, x, s, silent{})
}

// advance makes the next step of the run. It reports whether the run has ended.
func (x *exec) advance() (ended bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
	}()
	ref := app.OrderRef{Tenant: tenant, OrderID: x.w.db.order.ID}
	var err error
	switch j := x.run.job; j.kind {
	case "charge-order":
		err = x.service().ChargeOrder(context.Background(), ref, x.done)
	case "refund-charge":
		err = x.service().RefundCharge(context.Background(), ref, j.refund, x.done)
	default:
		err = x.service().SettlePayment(context.Background(), ref, j.intent, x.done)
	}
	if err != nil {
		x.did += " (" + err.Error()[strings.LastIndex(err.Error(), ": ")+1:] + ")"
	}
	return true
}

func (r run) encode(owns bool) string {
	if r.job.kind == "" {
		return ""
	}
	texts := []string{r.job.String(), fmt.Sprint(owns)}
	for _, l := range r.history {
		texts = append(texts, l.text)
	}
	return strings.Join(texts, "|")
}

// essence is the canonical encoding of an order and its payment.
func (d database) essence() string {
	old := func(past bool) string {
		if past {
			return "-"
		}
		return "+"
	}
	p := d.payment
	text := fmt.Sprint(d.order.Status, p.Status, p.IntentID, p.KeyGeneration, old(p.CreatedAt.Equal(past)), old(p.UpdatedAt.Equal(past)))
	if p.Refusal.Code != "" {
		text += " refused" + old(p.Refusal.Since.Equal(past))
	}
	for _, r := range p.Refunds {
		text += fmt.Sprint(" ", short(r.ID), r.Amount.Amount, r.Status, r.ProviderID, r.KeyGeneration, old(r.CreatedAt.Equal(past)))
		if !r.KeyFailedAt.IsZero() {
			text += old(r.KeyFailedAt.Equal(past))
		}
		if r.Refusal.Code != "" {
			text += "refused" + old(r.Refusal.Since.Equal(past))
		}
	}
	return text
}

func (d database) encode() string {
	var list []string
	for _, j := range d.jobs {
		list = append(list, fmt.Sprint(j, j.owner != 0))
	}
	list = append(append(list, d.inbox...), d.compared...)
	for _, c := range d.unmatched {
		list = append(list, fmt.Sprint("unmatched ", c.Intent.ID, c.KeyGeneration))
	}
	slices.Sort(list)
	return fmt.Sprint(d.essence(), d.onHand, d.returned, d.ids, list)
}
