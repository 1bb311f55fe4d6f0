package scenario

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/client/openapi"
)

// row is a row that requests which meet each other need.
type row struct {
	table string // with its condition
	arg   any
}

func orderRow(id openapi.OrderID) row   { return row{"orders WHERE id = $1", id} }
func paymentRow(id openapi.OrderID) row { return row{"payments WHERE order_id = $1", id} }
func stockRow(sku string) row           { return row{"stock WHERE sku = $1", sku} }

// hold locks a row until release.
func (r *Run) hold(what row) (release func()) {
	_, span := r.tracer.Start(r.ctx, "the scenario holds a row", trace.WithAttributes(
		attribute.String(AttrLane, "postgres"), attribute.String(AttrRequest, "SELECT FROM "+what.table+" FOR UPDATE")))
	held := r.Begin(r).Exec("SELECT FROM "+what.table+" FOR UPDATE", what.arg)
	return func() { held.Rollback(); span.End() }
}

// crowd makes n calls at once while a row that all of them need is held, and lets go of it when all have been sent and
// some wait for it: so they are really at work at the same time. It tells of them together.
func (r *Run) crowd(n int, held row, waiting int, call func(i int) error) ([]error, []Exchange) {
	calls := make([]func() error, n)
	for i := range calls {
		calls[i] = func() error { return call(i) }
	}
	errs, all := r.holding(held, func(made *made) {
		made.start(calls...)
		made.until(r, n, waiting)
	})
	r.listener.Crowd(all)
	return errs, all
}

// race makes two calls, the first one first: each waits for the held row, which is let go when both do.
func (r *Run) race(held row, first, second func() error) (firstErr, secondErr error) {
	errs, all := r.holding(held, func(made *made) {
		made.start(first)
		made.until(r, 1, 1)
		made.start(second)
		made.until(r, 2, 2)
	})
	for _, x := range all {
		r.listener.Exchange(x)
	}
	return errs[0], errs[1]
}

// holding holds a row during begin, which starts calls, and waits for them all. It returns what was exchanged.
func (r *Run) holding(held row, begin func(*made)) ([]error, []Exchange) {
	r.gather(true)
	defer r.gather(false)
	from := len(r.Told())
	r.sent.Store(0)
	calls := &made{}
	func() {
		defer r.hold(held)()
		begin(calls)
	}()
	calls.all.Wait()
	errs := make([]error, len(calls.errs))
	for i, e := range calls.errs {
		errs[i] = *e
	}
	return errs, r.Told()[from:]
}

// gather keeps exchanges from being told one by one.
func (r *Run) gather(on bool) { r.mu.Lock(); defer r.mu.Unlock(); r.gathering = on }

// made is calls that have been made.
type made struct {
	all   sync.WaitGroup
	errs  []*error
	ended atomic.Int32
}

func (m *made) start(calls ...func() error) {
	for _, call := range calls {
		result := new(error)
		m.errs = append(m.errs, result)
		m.all.Go(func() {
			*result = call()
			m.ended.Add(1)
		})
	}
}

// until waits until so many requests have been sent and so many statements wait for a lock, or every call has ended
// without waiting, which the checks will show.
func (m *made) until(r *Run, sent, waiting int) {
	r.until("requests that are at work at the same time", func() bool {
		return int(m.ended.Load()) == len(m.errs) || int(r.sent.Load()) >= sent && r.Blocked(r, "orders-api") >= waiting
	})
}
