package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/sandbox"
)

// holdCharges makes the provider charge every card, keep its answers until ClearFaults, and lose its events.
func (s *step) holdCharges() error {
	return s.provider.SetFaults([]sandbox.FaultRule{
		{Operation: sandbox.OpCharge, Kind: sandbox.FaultHold}, lostEvents(),
	})
}

// charged waits until the provider has charged an order, whether or not the service knows.
func (s *step) charged(ctx context.Context, id openapi.OrderID) error {
	return until(ctx, "the provider's charge", func() (bool, error) { return s.account(id).charges > 0, nil })
}

func eightRefunds(ctx context.Context, s *step) error {
	const n, fit, each = 8, 3, 1999
	id, err := s.bought(ctx, tea, fit)
	if err != nil {
		return err
	}
	sam := s.as("sam")
	errs, all, err := s.crowd(ctx, n, paymentRow(id), n, func(i int) error {
		_, err := sam.RefundOrder(ctx, id, openapi.RefundOrderRequest{Amount: openapi.Money{Amount: each, Currency: "EUR"}})
		return err
	})
	if err != nil {
		return err
	}
	s.showCrowd(all)
	exceeds := 0
	for _, err := range errs {
		if client.HasCode(err, openapi.ProblemCodeRefundExceedsCharge) {
			exceeds++
		}
	}
	s.check(count(all, func(x passed) bool { return x.status == http.StatusAccepted }) == fit, "%d are accepted", fit)
	s.check(exceeds == n-fit, "%d are refused: 409 refund_exceeds_charge", n-fit)
	payment, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded)
	if err != nil {
		return err
	}
	s.showLedger(id)
	s.check(payment.Refunded == payment.Amount, "the payment shows all of it as refunded")
	s.check(s.account(id) == account{charges: 1, charged: fit * each, refunds: fit, refunded: fit * each},
		"the ledger has %d refunds, together what was paid", fit)
	return nil
}

func fortyBuyers(ctx context.Context, s *step) error {
	const buyers, lamps, sku, price = 40, 30, "RARE-001", 25_000
	stock, err := s.as("sam").AdjustStock(ctx, sku, openapi.AdjustStockRequest{Delta: lamps - s.onHand(ctx, sku), Reason: new("a pallet came")})
	if err != nil {
		return err
	}
	s.check(stock.Value.OnHand == lamps, "%d lamps are on the shelf", lamps)
	receipts := make([]client.Answer[openapi.OrderReceipt], buyers)
	_, all, err := s.crowd(ctx, buyers, stockRow(sku), 10, func(i int) (err error) {
		receipts[i], err = s.as(fmt.Sprintf("buyer-%02d", i+1)).PlaceOrder(ctx, basket(sku, 1))
		return err
	})
	if err != nil {
		return err
	}
	s.showCrowd(all)
	is := func(code openapi.ProblemCode) func(passed) bool { return func(x passed) bool { return x.code == code } }
	s.check(count(all, func(x passed) bool { return x.status == http.StatusCreated }) == lamps, "%d orders", lamps)
	s.check(count(all, is(openapi.ProblemCodeInsufficientStock)) == buyers-lamps, "%d are refused: 409 insufficient_stock", buyers-lamps)
	s.check(count(all, is(openapi.ProblemCodeVersionConflict)) == 0, "nobody sees a version conflict")
	s.check(s.onHand(ctx, sku) == 0, "the shelf is empty")
	once := 0
	for _, r := range receipts {
		if r.ETag == "" {
			continue
		}
		if _, err := s.paid(ctx, r.Value.ID, openapi.PaymentStatusSucceeded); err != nil {
			return err
		}
		if s.account(r.Value.ID) == (account{charges: 1, charged: price}) {
			once++
		}
	}
	s.story.line("ledger", "%d charges of %s", once, euros(price))
	s.check(once == lamps, "the ledger has one charge for each of the %d orders", lamps)
	return nil
}

func killWorker(ctx context.Context, s *step) error {
	if err := s.holdCharges(); err != nil {
		return err
	}
	defer s.provider.ClearFaults()
	order, err := s.as("alice").PlaceOrder(ctx, basket("MUG-001", 1), client.WithKey("cart-0"))
	if err != nil {
		return err
	}
	s.killed = order.Value.ID
	if err := s.charged(ctx, s.killed); err != nil {
		return err
	}
	s.showLedger(s.killed)
	payment, err := s.quiet.GetPayment(ctx, s.killed)
	if err != nil {
		return err
	}
	s.check(payment.Value.Status == openapi.PaymentStatusPending, "the card is charged; the worker waits for the provider's answer")
	if err := s.leads(ctx); err != nil {
		return err
	}
	s.story.line("", "kill -9 %d", s.worker.cmd.Process.Pid)
	if err := s.worker.kill(); err != nil {
		return err
	}
	s.provider.ClearFaults()
	s.check(s.worker.cmd.ProcessState.String() == "signal: killed", "the worker is dead, and its commit never came")
	if err := s.startChild(); err != nil {
		return err
	}
	s.story.line("", "A new worker starts, process %d. The dead one's job still looks like one that is being worked.",
		s.worker.cmd.Process.Pid)
	return nil
}

// leads waits until River has a leader, which is the one worker that there is. So the crash is that of a leader, whose
// successor River admits only when the dead one's term has run out.
func (s *step) leads(ctx context.Context) error {
	return until(ctx, "River's leader", func() (led bool, err error) {
		err = s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM river_leader)`).Scan(&led)
		return led, err
	})
}

func resumeCharge(ctx context.Context, s *step) error {
	s.story.line("", "Its job is taken over once it counts as crashed, which takes up to 20 s here. The provider's event is lost …")
	stop := s.story.patience()
	err := s.noJobs(ctx, s.killed)
	stop()
	if err != nil {
		return err
	}
	payment, err := s.paid(ctx, s.killed, openapi.PaymentStatusSucceeded)
	if err != nil {
		return err
	}
	s.story.line("", "The order of the first chapter: %s. What the provider was asked for it:", s.killed)
	s.showAttempts(s.killed)
	s.check(payment.Status == openapi.PaymentStatusSucceeded, "another worker took the job over; the payment has succeeded")
	s.check(len(s.confirmations(s.killed)) == 1,
		"it read the intent by its id and found it succeeded: the provider was not asked to charge again")
	return s.chargedOnce(ctx, s.killed, 1250)
}

// balanceBooks goes through every order that the tour has made.
func balanceBooks(ctx context.Context, s *step) error {
	if err := s.atRest(ctx); err != nil {
		return err
	}
	var wrong bytes.Buffer
	ledger, sold, n := accounts(s.provider.Ledger()), map[string]int64{}, 0
	err := s.everyOrder(ctx, func(o openapi.Order, p openapi.Payment) {
		n++
		if why := unbalanced(o, p, ledger[o.ID.String()]); why != "" {
			fmt.Fprintf(&wrong, "; but order %s: %s", o.ID, why)
		}
		if o.Status != openapi.OrderStatusCancelled {
			for _, l := range o.Lines {
				sold[l.SKU] += l.Quantity
			}
		}
	})
	if err != nil {
		return err
	}
	s.check(wrong.Len() == 0 && n > 0, "%d orders: charged less refunded is what each of them says%s", n, &wrong)
	for _, p := range catalogue() {
		put := p.onHand
		if p.sku == "RARE-001" {
			put = 30
		}
		left := s.onHand(ctx, p.sku)
		s.check(left+sold[p.sku] == put, "%s: %d on the shelf and %d sold are the %d that were put there", p.sku, left, sold[p.sku], put)
	}
	return nil
}

// atRest waits until no charge and no refund is on its way, and no job is left that looks at one.
func (s *step) atRest(ctx context.Context) error {
	return until(ctx, "the last charges and refunds", func() (rest bool, err error) {
		err = s.db.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM payments WHERE status = 'pending')
			AND NOT EXISTS (SELECT FROM refunds WHERE status = 'pending')
			AND NOT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled')
				AND kind IN ('charge-order', 'refund-charge', 'settle-payment'))`).Scan(&rest)
		return rest, err
	})
}

func (s *step) everyOrder(ctx context.Context, look func(openapi.Order, openapi.Payment)) error {
	page := openapi.ListOrdersParams{Limit: new(openapi.Limit(100))}
	for {
		list, err := s.quiet.ListOrders(ctx, page)
		if err != nil {
			return err
		}
		for _, o := range list.Value.Items {
			order, err := s.quiet.GetOrder(ctx, o.ID)
			if err != nil {
				return err
			}
			payment, err := s.quiet.GetPayment(ctx, o.ID)
			if err != nil {
				return err
			}
			look(order.Value, payment.Value)
		}
		if page.After = list.Value.Page.NextCursor; page.After == nil {
			return nil
		}
	}
}

// unbalanced says what is wrong between an order at rest and the provider's ledger.
func unbalanced(o openapi.Order, p openapi.Payment, a account) string {
	paid := p.Status == openapi.PaymentStatusSucceeded
	switch {
	case a.charges > 1:
		return "charged more than once"
	case paid && a.charged != o.Total.Amount, !paid && a.charged != 0:
		return "charged " + euros(a.charged)
	case a.refunded != p.Refunded.Amount || a.refunded > a.charged:
		return "refunded " + euros(a.refunded)
	case o.Status == openapi.OrderStatusShipped && !paid:
		return "shipped unpaid"
	case o.Status == openapi.OrderStatusCancelled && a.charged != a.refunded:
		return "cancelled and not refunded"
	case p.Status == openapi.PaymentStatusFailed && o.Status != openapi.OrderStatusCancelled:
		return "declined and not cancelled"
	}
	return ""
}
