package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// fault is a mistake that is planted in the protocol, for a test that the model finds it.
type fault int

const (
	nothing       fault = iota
	idNotDurable        // the intent is confirmed before its id is durable
	freshKeys           // every attempt sends another key
	noListing           // a refund is not looked for before it is created again
	noLag               // a refund is created again at once after a 500
	eventsTrusted       // settle-payment believes the event instead of asking the provider
	staleOrder          // a run keeps the order of its first transaction, and saves it without a compare
	noReconcile         // reconcile-payments does not run
)

// bounds are the actors of one search.
type bounds struct {
	cards    []card
	faults   int       // how many faults there are in one history
	workers  int       // runs of jobs at once
	cancel   bool      // the customer may cancel
	refund   bool      // staff may grant a refund of a part
	events   bool      // else all are lost
	restore  bool      // the database may be restored from a backup made after the order was placed
	lose     bool      // jobs may be lost
	paid     bool      // the search starts with a charged order
	outcomes []outcome // of calls of the provider, beside works
	late     bool      // refunds may fail after they have succeeded
	planted  fault
}

// world is the state of the payment model.
type world struct {
	db       database
	stripe   stripe
	runs     [2]run
	faults   int  // that are left
	asked    bool // staff has granted the refund
	restored bool
}

const maxWorkers = 2

func (w *world) clone() *world {
	c := *w
	c.db, c.stripe = w.db.clone(), w.stripe.clone()
	return &c
}

func (w *world) key() [sha256.Size]byte {
	runs := make([]string, 0, maxWorkers)
	for i, r := range w.runs {
		runs = append(runs, r.encode(slices.ContainsFunc(w.db.jobs, func(j job) bool { return j.owner == i+1 })))
	}
	slices.Sort(runs)
	return sha256.Sum256([]byte(fmt.Sprint(w.faults, w.asked, w.restored, w.stripe.encode(), w.db.encode(), runs)))
}

// payment is the model of one order and its payment: the customer, staff, up to two workers at the service's own
// jobs, the provider with its events, and reconcile-payments. The searches see 2,000 to 44,000 states each, up to 45
// steps deep; docs/model.md lists them and what each planted fault breaks.
func payment(t *testing.T, b bounds) spec[*world, [sha256.Size]byte] {
	t.Helper()
	placed := &tx{db: database{onHand: units}}
	_, err := place(placed, 1)
	require.NoError(t, err)
	s := spec[*world, [sha256.Size]byte]{key: (*world).key, always: b.always, quiet: b.quiet}
	for _, c := range b.cards {
		w := &world{db: placed.db, stripe: stripe{card: c, silent: !b.events}, faults: b.faults}
		for b.paid && w.db.payment.Status == domain.PaymentPending {
			w = (&moves{bounds: bounds{workers: 1}, from: w}).only()
		}
		s.initial = append(s.initial, w)
	}
	s.steps = func(w *world) []step[*world] {
		m := &moves{bounds: b, from: w, backup: placed.db}
		m.workers()
		m.customers()
		m.provider()
		m.time()
		return m.list
	}
	return s
}

// only is the one next step of a worker that is alone and meets no fault.
func (m *moves) only() *world {
	m.workers()
	return m.list[0].to
}

// moves collects the steps that lead out of a state.
type moves struct {
	bounds
	from   *world
	backup database
	list   []step[*world]
}

func (m *moves) add(name string, change func(w *world)) {
	to := m.from.clone()
	change(to)
	m.list = append(m.list, step[*world]{name: name, to: to})
}

// option adds a step that need not happen.
func (m *moves) option(name string, change func(w *world)) {
	m.add(name, change)
	m.list[len(m.list)-1].optional = true
}

// fault adds an optional step that uses up one of the faults.
func (m *moves) fault(name string, change func(w *world)) {
	if m.from.faults > 0 {
		m.option(name, func(w *world) { w.faults--; change(w) })
	}
}

// workers are the runs of jobs: each takes a job, makes one step at a time, and can be killed, or frozen for so long
// that its job is given to another.
func (m *moves) workers() {
	free := slices.IndexFunc(m.from.runs[:m.bounds.workers], func(r run) bool { return r.job.kind == "" })
	for i, j := range m.from.db.jobs {
		if j.owner == 0 && free >= 0 {
			m.add(fmt.Sprintf("worker %d takes %s", free+1, j), func(w *world) {
				w.db.jobs[i].owner = free + 1
				w.runs[free] = run{job: j}
			})
		}
		if j.owner == 0 && m.lose {
			m.fault("lose "+j.String(), func(w *world) { w.db.jobs = slices.Delete(w.db.jobs, i, i+1) })
		}
	}
	for i, r := range m.from.runs {
		if r.job.kind == "" {
			continue
		}
		m.advance(i)
		m.fault(fmt.Sprintf("kill worker %d", i+1), func(w *world) { w.end(i) })
		if m.bounds.workers > 1 && slices.ContainsFunc(m.from.db.jobs, func(j job) bool { return j.owner == i+1 }) {
			m.fault(fmt.Sprintf("worker %d is frozen and counts as dead", i+1), func(w *world) { w.release(i) })
		}
	}
}

// advance adds the next step of a run, once for each outcome that the environment can give it.
func (m *moves) advance(i int) {
	for k, choice := range append([]outcome{works}, m.outcomes...) {
		if k > 0 && m.from.faults == 0 {
			break
		}
		to := m.from.clone()
		x := &exec{w: to, slot: i + 1, run: to.runs[i], choice: choice, planted: m.planted}
		if to.runs[i] = x.run; x.advance() {
			to.end(i)
		} else {
			to.runs[i] = x.run
		}
		if k > 0 {
			to.faults--
		}
		m.list = append(m.list, step[*world]{fmt.Sprintf("worker %d: %s %s", i+1, x.did, choice), k > 0, to})
		if !x.fallible {
			break
		}
	}
}

// end ends a run; what is left of its job waits again.
func (w *world) end(i int) {
	w.release(i)
	w.runs[i] = run{}
}

func (w *world) release(i int) {
	for k, j := range w.db.jobs {
		if j.owner == i+1 {
			w.db.jobs = slices.Delete(w.db.jobs, k, k+1)
			j.owner = 0
			w.db.enqueue(j)
			return
		}
	}
}

// customers is what callers ask of the API. Each is one transaction.
func (m *moves) customers() {
	call := func(w *world, use func(s *app.Service) (app.Outcome, error)) {
		t := &tx{db: w.db}
		if _, err := use(app.New(direct{t}, nil, nil, settings, silent{})); err == nil {
			w.db = t.db
		}
	}
	id := m.from.db.order.ID
	if m.cancel && m.from.db.order.Status == domain.OrderOpen {
		m.option("the customer cancels", func(w *world) {
			call(w, func(s *app.Service) (app.Outcome, error) {
				return s.CancelOrder(context.Background(), customer, keyed[domain.OrderState](),
					app.CancelOrderInput{OrderID: id, Expected: app.Expected{w.db.order.Version}})
			})
		})
	}
	if m.refund && !m.from.asked && m.from.db.payment.Status == domain.PaymentSucceeded {
		m.option("staff grants a refund", func(w *world) {
			w.asked = true
			call(w, func(s *app.Service) (app.Outcome, error) {
				return s.RefundOrder(context.Background(), customer, keyed[app.RefundReceipt](),
					app.RefundOrderInput{OrderID: id, Amount: 400, Currency: "EUR"})
			})
		})
	}
}

func keyed[R any]() app.Keyed[R] {
	return app.Keyed[R]{Key: "k", Render: func(R) (app.Reply, error) { return app.Reply{}, nil }}
}

// provider is what Stripe does by itself.
func (m *moves) provider() {
	for i, in := range m.from.stripe.intents {
		if in.Status == app.IntentProcessing {
			m.add("the provider charges", func(w *world) { w.stripe.move(&w.stripe.intents[i], app.IntentSucceeded) })
			m.option("the provider declines", func(w *world) {
				w.stripe.move(&w.stripe.intents[i], app.IntentRequiresPaymentMethod)
			})
		}
	}
	for i, r := range m.from.stripe.refunds {
		if m.late && r.Status == domain.RefundSucceeded {
			m.fault("a refund fails late", func(w *world) {
				w.stripe.tell(r.IntentID, r.ID+" succeeded")
				w.stripe.refunds[i].Status = domain.RefundFailed
				w.stripe.tell(r.IntentID, r.ID+" failed")
			})
		}
	}
	for i, c := range m.from.stripe.late {
		m.add("the late "+c.what+" executes", func(w *world) {
			w.stripe.late = slices.Delete(w.stripe.late, i, i+1)
			w.stripe.saved = append(w.stripe.saved, saved{c, w.stripe.execute(c)})
		})
	}
	for i, e := range m.from.stripe.events {
		m.add("event "+e.id, func(w *world) { w.receive(e, m.planted); w.stripe.events = slices.Delete(w.stripe.events, i, i+1) })
		m.fault("lose event "+e.id, func(w *world) { w.stripe.events = slices.Delete(w.stripe.events, i, i+1) })
		m.fault("double event "+e.id, func(w *world) { w.receive(e, m.planted) })
	}
}

func (w *world) receive(e event, planted fault) {
	t := &tx{db: w.db}
	if planted == eventsTrusted {
		t.told = e.told
	}
	err := app.New(direct{t}, nil, nil, settings, silent{}).ReceiveProviderEvent(context.Background(), app.ProviderEvent{
		ID: e.id, Ref: app.OrderRef{Tenant: tenant, OrderID: w.db.order.ID}, IntentID: e.intent,
	})
	if err == nil {
		w.db = t.db
	}
}

// time passes while no run is at work: a run ends within JOB_TIMEOUT. reconcile-payments runs as one step, once a day
// has passed; in a healthy service that changes nothing.
func (m *moves) time() {
	if m.from.runs[0].job.kind != "" || m.from.runs[1].job.kind != "" {
		return
	}
	if len(m.from.stripe.late) == 0 {
		m.add("a day passes", func(w *world) { w.db.age(); w.stripe.age() })
	}
	if m.restore && !m.from.restored {
		m.fault("restore the database", func(w *world) {
			ids := w.db.ids
			w.db, w.restored = m.backup.clone(), true
			w.db.ids = ids
			if m.from.db.payment.CreatedAt.Equal(past) {
				w.db.age()
			}
		})
	}
	if m.planted != noReconcile && m.from.db.payment.CreatedAt.Equal(past) && (m.restore || len(m.from.db.jobs) == 0) {
		m.add("reconcile-payments", func(w *world) {
			x := &exec{w: w, atOnce: true}
			_, err := x.service().ReconcilePayments(context.Background(), app.ReconcileLimits{
				Age: 1, Orphans: 10, Pages: 1, Returns: 10,
			}, func(context.Context, app.Tx) error { return nil })
			if err != nil {
				w.runs[0].job.kind = "broken: " + err.Error()
			}
		})
	}
}

// charged is the intents whose money has moved.
func (w *world) charged() (list []intent) {
	for _, i := range w.stripe.intents {
		if i.Status == app.IntentSucceeded {
			list = append(list, i)
		}
	}
	return list
}

// always is what holds in every state.
func (b bounds) always(w *world) error {
	if len(w.charged()) > 1 && !b.restore {
		return errors.New("two charges")
	}
	made := map[[16]byte]bool{}
	for _, r := range w.stripe.refunds {
		if made[r.RefundID] && r.Status != domain.RefundFailed {
			return errors.New("a refund made twice")
		}
		made[r.RefundID] = made[r.RefundID] || r.Status != domain.RefundFailed
	}
	p := w.db.payment
	for _, i := range w.stripe.intents {
		if i.Status != app.IntentRequiresConfirmation && i.Status != app.IntentCanceled && p.IntentID != i.ID && !b.restore {
			return errors.New("an intent confirmed before its id is durable")
		}
		if p.IntentID == i.ID && p.Status == domain.PaymentSucceeded && i.Status != app.IntentSucceeded {
			return errors.New("a charge that the provider does not have")
		}
	}
	if p.Refunded().Amount > p.Amount.Amount {
		return errors.New("refunds beyond the charge")
	}
	if back := w.db.order.Status == domain.OrderCancelled; w.db.onHand != units-1 && !back || w.db.onHand != units && back {
		return fmt.Errorf("%d units on hand of a %s order", w.db.onHand, w.db.order.Status)
	}
	return nil
}

// quiet is what holds once nothing is left to do: books and ledger are equal, and a cancelled order has cost nothing.
func (b bounds) quiet(w *world) error {
	p := w.db.payment
	if p.Status == domain.PaymentPending {
		return errors.New("the payment is pending")
	}
	for _, i := range w.charged() {
		left := i.Amount.Amount - w.stripe.refunded(i.ID)
		switch {
		case p.Status == domain.PaymentSucceeded && p.IntentID == i.ID:
			if left != p.Balance().Amount {
				return fmt.Errorf("the ledger has %d, the books have %d", left, p.Balance().Amount)
			}
			failed := (b.late || b.restore || slices.Contains(b.outcomes, refuses)) && slices.ContainsFunc(p.Refunds, func(r domain.Refund) bool { return r.Status == domain.RefundFailed })
			if w.db.order.Status == domain.OrderCancelled && left != 0 && !failed {
				return errors.New("a cancelled order is paid")
			}
		case left != 0:
			return errors.New("a charge that no payment accounts for")
		}
	}
	for _, r := range p.Refunds {
		if r.Status == domain.RefundPending {
			return errors.New("a refund is pending")
		}
	}
	if w.db.order.Status == domain.OrderOpen && p.Status != domain.PaymentSucceeded {
		return errors.New("an open order that is not paid")
	}
	return nil
}

// Ensure that no history of the bounded actors charges twice, loses money or stock, or leaves work that never ends.
func TestPaymentsModel(t *testing.T) {
	t.Parallel()
	all, one := []card{good, declined, slow}, []card{good}
	for name, b := range map[string]bounds{
		"a charge meets 500s and refusals": {
			cards: all, faults: 2, workers: 1, cancel: true, outcomes: []outcome{fails, failsUndone, refuses},
		},
		"a call executes after its 500": {cards: one, faults: 2, workers: 1, cancel: true, outcomes: []outcome{failsLater}},
		"two workers charge":            {cards: one, faults: 1, workers: 2, cancel: true, outcomes: []outcome{fails}},
		"events and lost jobs":          {cards: all, faults: 1, workers: 1, cancel: true, events: true, lose: true},
		"a refund meets 500s and refusals": {
			cards: one, paid: true, faults: 2, workers: 1, cancel: true, refund: true,
			outcomes: []outcome{fails, failsUndone, failsLater, refuses},
		},
		"two workers refund": {
			cards: one, paid: true, faults: 2, workers: 2, refund: true, outcomes: []outcome{fails, failsLater},
		},
		"two refunds at once":  {cards: one, paid: true, faults: 1, workers: 2, cancel: true, refund: true},
		"refunds fail late":    {cards: one, paid: true, faults: 1, workers: 1, cancel: true, events: true, late: true},
		"a restore":            {cards: one, faults: 2, workers: 1, cancel: true, restore: true, outcomes: []outcome{fails}},
		"a restore of refunds": {cards: one, faults: 1, workers: 1, cancel: true, refund: true, restore: true},
	} {
		if small() {
			b.faults = min(b.faults, 1)
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); explore(payment(t, b), 100_000).holds(t) })
	}
}

// Ensure that the model can lose: each planted mistake is found, by a shortest history of that many steps.
func TestPaymentsModelFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		planted   fault
		bounds    bounds
		invariant string
		steps     int
	}{
		"confirm before the id is durable": {idNotDurable, bounds{}, "an intent confirmed before its id is durable", 5},
		"a fresh key for each attempt":     {freshKeys, bounds{paid: true, workers: 2, faults: 1, refund: true}, "a refund made twice", 9},
		"no look in the list":              {noListing, bounds{paid: true, faults: 1, refund: true}, "a refund made twice", 10},
		"no wait after a 500": {
			noLag, bounds{paid: true, faults: 1, refund: true, outcomes: []outcome{failsLater}}, "a refund made twice", 10,
		},
		"events trusted": {
			eventsTrusted, bounds{paid: true, faults: 1, cancel: true, events: true, late: true}, "the books have 0", 27,
		},
		"stock returned twice": {staleOrder, bounds{cards: []card{declined}, cancel: true}, "6 units on hand", 8},
		"no reconciliation":    {noReconcile, bounds{faults: 1, lose: true}, "the payment is pending", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := c.bounds
			b.planted, b.workers = c.planted, max(b.workers, 1)
			if b.cards == nil {
				b.cards = []card{good}
			}
			explore(payment(t, b), 100_000).breaks(t, c.invariant, c.steps)
		})
	}
}
