package scenario

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/sandbox"
)

func refundsAtOnce(r *Run) {
	n := r.knobs["refunds"]
	const fit = 3
	id, sam := r.bought(tea, fit), r.as("sam")
	errs, all := r.crowd(n, paymentRow(id), n, func(int) error {
		_, err := sam.RefundOrder(r.ctx, id, refundOf(teaPrice))
		return err
	})
	exceeds := 0
	for _, err := range errs {
		if client.HasCode(err, openapi.ProblemCodeRefundExceedsCharge) {
			exceeds++
		}
	}
	equal(r, fit, count(all, withStatus(http.StatusAccepted)), "%d are accepted", fit)
	equal(r, n-fit, exceeds, "%d are refused: 409 refund_exceeds_charge", n-fit)
	payment := r.paid(id, openapi.PaymentStatusSucceeded)
	r.showLedger(id)
	equal(r, payment.Amount, payment.Refunded, "the payment shows all of it as refunded")
	equal(r, account{charges: 1, charged: fit * teaPrice, refunds: fit, refunded: fit * teaPrice}, r.account(id),
		"the ledger has %d refunds, together what was paid", fit)
}

func refundOf(cents int64) openapi.RefundOrderRequest {
	return openapi.RefundOrderRequest{Amount: openapi.Money{Amount: cents, Currency: "EUR"}}
}

func manyBuyers(r *Run) {
	const sku, price = lamp, 25_000
	buyers, lamps := r.knobs["buyers"], r.knobs["lamps"]
	fit := min(buyers, lamps)
	stock := must2(r.as("sam").AdjustStock(r.ctx, sku, openapi.AdjustStockRequest{
		Delta: int64(lamps) - r.OnHand(r, sku), Reason: new("a pallet came"),
	}))(r)
	equal(r, int64(lamps), stock.Value.OnHand, "%d lamps are on the shelf", lamps)
	receipts := make([]client.Answer[openapi.OrderReceipt], buyers)
	_, all := r.crowd(buyers, stockRow(sku), min(buyers, 10), func(i int) (err error) {
		receipts[i], err = r.as(fmt.Sprintf("buyer-%02d", i+1)).PlaceOrder(r.ctx, basket(sku, 1))
		return err
	})
	equal(r, fit, count(all, withStatus(http.StatusCreated)), "%d orders", fit)
	equal(r, buyers-fit, count(all, withCode(openapi.ProblemCodeInsufficientStock)), "%d are refused: 409 insufficient_stock", buyers-fit)
	equal(r, 0, count(all, withCode(openapi.ProblemCodeVersionConflict)), "no buyer sees a version conflict")
	equal(r, int64(lamps-fit), r.OnHand(r, sku), "%d lamps are left", lamps-fit)
	once := 0
	for _, receipt := range receipts {
		if receipt.ETag == "" {
			continue
		}
		r.paid(receipt.Value.ID, openapi.PaymentStatusSucceeded)
		if r.account(receipt.Value.ID) == (account{charges: 1, charged: price}) {
			once++
		}
	}
	r.say("ledger", "%d charges of %s", once, euros(price))
	equal(r, fit, once, "the ledger has one charge for each of the %d orders", fit)
}

// cancelledAndRefunded checks that a cancelled order was charged and refunded once each, and that its stock is back.
func (r *Run) cancelledAndRefunded(id openapi.OrderID, amount, stock int64) {
	payment := r.paid(id, openapi.PaymentStatusSucceeded)
	order := must2(r.quiet().GetOrder(r.ctx, id))(r)
	r.showLedger(id)
	r.check(order.Value.Status == openapi.OrderStatusCancelled && order.Value.Shipment == nil, "the order is cancelled, and not shipped")
	r.check(len(payment.Refunds) == 1 && payment.Refunded.Amount == amount, "the payment shows one refund, of all that was paid")
	equal(r, account{charges: 1, charged: amount, refunds: 1, refunded: amount}, r.account(id),
		"the ledger has one charge and one refund of it")
	equal(r, stock, r.OnHand(r, tea), "its stock is back on the shelf")
}

// The choices of who wins the race for a charge that is in flight.
const (
	chargeWins = iota + 1
	cancellationWins
)

func cancelAgainstCharge(r *Run) {
	if r.knobs["winner"] == chargeWins {
		r.cancelTooLate()
	} else {
		r.cancelInTime()
	}
}

// cancelTooLate cancels an order whose card the provider has charged, before the service knows.
func (r *Run) cancelTooLate() {
	stock, alice := r.OnHand(r, tea), r.as("alice")
	r.faults(sandbox.FaultRule{Operation: sandbox.OpCharge, Kind: sandbox.FaultHold}, lostEvents())
	r.say("", "The provider is slow: it charges, keeps its answer, and its event is lost.")
	order := must2(alice.PlaceOrder(r.ctx, basket(tea, 3)))(r)
	id := order.Value.ID
	r.charged(id)
	r.showLedger(id)
	payment := must2(alice.GetPayment(r.ctx, id))(r)
	equal(r, openapi.PaymentStatusPending, payment.Value.Status, "the card is charged, and the service does not know yet")
	must2(alice.CancelOrder(r.ctx, id, order.ETag, openapi.CancelOrderRequest{Reason: new("too slow")}))(r)
	r.say("", "The order is cancelled at once. Its job asks the provider: the charge was first.")
	r.cancelledAndRefunded(id, 3*teaPrice, stock)
}

// cancelInTime cancels an order while its confirmation is on its way to the provider.
func (r *Run) cancelInTime() {
	stock, alice := r.OnHand(r, tea), r.as("alice")
	r.faults(sandbox.FaultRule{Operation: sandbox.OpConfirmIntent, Kind: sandbox.FaultHoldBefore, Times: 1})
	r.say("", "The confirmation is slow to arrive: the provider has not charged yet.")
	order := must2(alice.PlaceOrder(r.ctx, basket(tea, 3)))(r)
	id := order.Value.ID
	r.must(r.Sandbox.WaitHeld(r.ctx, 1))
	must2(alice.CancelOrder(r.ctx, id, order.ETag, openapi.CancelOrderRequest{Reason: new("too slow")}))(r)
	r.paid(id, openapi.PaymentStatusCanceled)
	r.mark("provider", "The intent is cancelled at the provider. Now the confirmation arrives.")
	r.Sandbox.ClearFaults()
	r.until("the end of the charge's job", func() bool {
		return r.Count(r, `river_job WHERE kind = 'charge-order' AND state <> 'completed' AND args->>'order_id' = $1`, id.String()) == 0
	})
	r.showAttempts(id)
	r.showLedger(id)
	equal(r, account{}, r.account(id), "the provider refused it: nothing was charged, so nothing is to be refunded")
	equal(r, stock, r.OnHand(r, tea), "its stock is back on the shelf")
}

func savedError(r *Run) {
	r.say("", "The provider charges, answers 500, and keeps that answer under the key.")
	id := r.boughtDuring(sandbox.FaultError500)
	equal(r, 1, len(r.confirmations(id)), "the next run reads the intent: it has succeeded, and is not confirmed again")
	r.say("", "The provider answers 500 and keeps it, and has charged nothing. Its key would repeat the 500 for a day.")
	id = r.boughtDuring(sandbox.FaultError500Undone)
	tries := r.confirmations(id)
	r.check(len(tries) == 2 && strings.HasSuffix(tries[1].IdempotencyKey, ":confirm:2"),
		"the next run reads the intent: it waits for a confirmation, and gets one under the next key")
}

// boughtDuring places an order whose confirmation meets a fault, once, and checks that it is charged once all the same.
func (r *Run) boughtDuring(kind string) openapi.OrderID {
	r.faults(sandbox.FaultRule{Operation: sandbox.OpConfirmIntent, Kind: kind, Times: 1}, lostEvents())
	id := must2(r.as("alice").PlaceOrder(r.ctx, basket(tea, 1)))(r).Value.ID
	r.paid(id, openapi.PaymentStatusSucceeded)
	r.showAttempts(id)
	r.chargedOnce(id, teaPrice)
	return id
}

// The ways in which a provider can be down.
func outages() Knob {
	return choose("outage", "what the provider does", 1, "answers 500 to everything", "cuts every connection after its work",
		"answers 429 to everything")
}

func providerDown(r *Run) {
	n := r.knobs["orders"]
	kind := []string{sandbox.FaultError500Before, sandbox.FaultDrop, sandbox.FaultRateLimit429}[r.knobs["outage"]-1]
	r.faults(sandbox.FaultRule{Operation: sandbox.OpAny, Kind: kind}, lostEvents())
	alice, ids := r.as("alice"), make([]openapi.OrderID, n)
	for i := range ids {
		ids[i] = must2(alice.PlaceOrder(r.ctx, basket(tea, 1)))(r).Value.ID
	}
	equal(r, n, count(r.Told(), withStatus(http.StatusCreated)), "while the provider is down, %d orders are accepted", n)
	for _, id := range ids {
		r.until("a charge that fails", func() bool {
			return r.Count(r, `river_job WHERE args->>'order_id' = $1 AND (cardinality(errors) > 0 OR metadata ? 'snoozes')`, id.String()) > 0
		})
		equal(r, openapi.PaymentStatusPending, must2(r.quiet().GetPayment(r.ctx, id))(r).Value.Status,
			"the charge has failed and its outcome is not guessed: pending")
	}
	r.mark("provider", "The provider works again.")
	r.Sandbox.ClearFaults()
	for _, id := range ids {
		r.chargedOnce(id, teaPrice)
	}
}

// lateFailure lets a refund fail a day after it succeeded, by the provider's clock.
func lateFailure(r *Run) {
	id, sam := r.bought(tea, 1), r.as("sam")
	must2(sam.RefundOrder(r.ctx, id, refundOf(teaPrice)))(r)
	payment := r.paid(id, openapi.PaymentStatusSucceeded)
	equal(r, int64(teaPrice), payment.Refunded.Amount, "the refund has succeeded")
	r.mark("provider", "A day passes at the provider. Alice's card was closed: her bank sends the money back.")
	r.Sandbox.AdvanceClock(24 * time.Hour)
	for _, refund := range r.Sandbox.Ledger().Refunds {
		if refund.OrderID == id.String() {
			r.must(r.Sandbox.FailRefund(refund.ID))
		}
	}
	quiet := r.quiet()
	r.until("the provider's event", func() bool {
		return must2(quiet.GetPayment(r.ctx, id))(r).Value.Refunds[0].Status == openapi.RefundStatusFailed
	})
	r.showLedger(id)
	equal(r, account{charges: 1, charged: teaPrice}, r.account(id), "an event told it: the refund is failed, and counted as a finding")
	r.say("", "The amount can be refunded again.")
	must2(sam.RefundOrder(r.ctx, id, refundOf(teaPrice)))(r)
	payment = r.paid(id, openapi.PaymentStatusSucceeded)
	r.showLedger(id)
	r.check(payment.Refunded.Amount == teaPrice && r.account(id).refunded == teaPrice,
		"the second refund has succeeded; the first one has not")
}
