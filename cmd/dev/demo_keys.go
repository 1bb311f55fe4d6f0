package main

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

const tea = "TEA-001"

func home() openapi.Address {
	return openapi.Address{Name: "Alice Ames", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE"}
}

func basket(sku string, quantity int64) openapi.PlaceOrderRequest {
	return openapi.PlaceOrderRequest{
		Currency: "EUR", Lines: []openapi.OrderLineRequest{{SKU: sku, Quantity: quantity}},
		ShippingAddress: home(), PaymentMethod: "pm_card_visa",
	}
}

// bought is an order that is paid, placed without being shown.
func (s *step) bought(ctx context.Context, sku string, quantity int64) (openapi.OrderID, error) {
	order, err := s.demo.client(s.api.URL(), "alice", http.DefaultTransport).PlaceOrder(ctx, basket(sku, quantity))
	if err != nil {
		return openapi.OrderID{}, err
	}
	id := order.Value.ID
	p, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded)
	if err == nil {
		s.story.line("", "Alice has an open order, paid with %s: %s", euros(p.Amount.Amount), id)
	}
	return id, err
}

// chargedOnce checks what the provider's ledger has on an order that was paid and not refunded.
func (s *step) chargedOnce(ctx context.Context, id openapi.OrderID, amount int64) error {
	if _, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded); err != nil {
		return err
	}
	s.showLedger(id)
	s.check(s.account(id) == account{charges: 1, charged: amount}, "the ledger has one charge of %s for the order", euros(amount))
	return nil
}

func placeOrder(ctx context.Context, s *step) error {
	alice := s.as("alice")
	order, err := alice.PlaceOrder(ctx, basket(tea, 2), client.WithKey("cart-1"))
	if err != nil {
		return err
	}
	id := order.Value.ID
	s.check(order.Location == "/v1/orders/"+id.String() && order.ETag != "", "201 with where it is and which version it has")
	if _, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded); err != nil {
		return err
	}
	payment, err := alice.GetPayment(ctx, id)
	if err != nil {
		return err
	}
	s.check(payment.Value.Status == openapi.PaymentStatusSucceeded, "the payment has succeeded")
	now, err := alice.GetOrder(ctx, id)
	if err != nil {
		return err
	}
	s.check(now.ETag == order.ETag, "the charge has not made the order's version stale")
	return s.chargedOnce(ctx, id, 2*1999)
}

func loseAnswer(ctx context.Context, s *step) error {
	before := s.orders(ctx)
	s.proxy.LoseAnswers(1)
	order, err := s.lossily("alice").PlaceOrder(ctx, basket(tea, 2), client.WithKey("cart-2"))
	if err != nil {
		return err
	}
	s.check(s.proxy.Lost() == http.StatusCreated, "the service had answered %d, and the connection was cut", s.proxy.Lost())
	s.check(order.Replayed, "the client tried again with the same key and the same bytes, and got that answer")
	s.check(s.orders(ctx) == before+1, "there is one order more")
	return s.chargedOnce(ctx, order.Value.ID, 2*1999)
}

func twentyDuplicates(ctx context.Context, s *step) error {
	const n = 20
	before, alice := s.orders(ctx), s.as("alice")
	receipts := make([]client.Answer[openapi.OrderReceipt], n)
	errs, all, err := s.crowd(ctx, n, stockRow(tea), 1, func(i int) (err error) {
		receipts[i], err = alice.PlaceOrder(ctx, basket(tea, 1), client.WithKey("cart-3"))
		return err
	})
	if err != nil {
		return err
	}
	s.showCrowd(all)
	accepted := slices.DeleteFunc(all, func(x passed) bool { return x.status != http.StatusCreated })
	s.check(len(accepted) == n && none(errs), "all %d were answered 201", n)
	s.check(count(accepted, passed.replayed) == n-1, "one did the work, %d got its answer", n-1)
	s.check(count(accepted, func(x passed) bool { return bytes.Equal(x.answer, accepted[0].answer) }) == n,
		"all answers have the same bytes")
	s.check(s.orders(ctx) == before+1, "there is one order more")
	return s.chargedOnce(ctx, receipts[0].Value.ID, 1999)
}

func reuseKey(ctx context.Context, s *step) error {
	alice := s.as("alice")
	if _, err := alice.PlaceOrder(ctx, basket(tea, 1), client.WithKey("cart-4")); err != nil {
		return err
	}
	before, stock := s.orders(ctx), s.onHand(ctx, tea)
	_, err := alice.PlaceOrder(ctx, basket(tea, 3), client.WithKey("cart-4"))
	s.check(s.last().status == http.StatusUnprocessableEntity && client.HasCode(err, openapi.ProblemCodeIdempotencyKeyReused),
		"422 idempotency_key_reused")
	s.check(s.orders(ctx) == before && s.onHand(ctx, tea) == stock, "no order, and no stock gone")
	again, err := alice.PlaceOrder(ctx, basket(tea, 1), client.WithKey("cart-4"))
	if err != nil {
		return err
	}
	s.check(again.Replayed, "the first request still gets its answer under the key")
	return nil
}

func borrowKey(ctx context.Context, s *step) error {
	hers, err := s.as("alice").PlaceOrder(ctx, basket(tea, 1), client.WithKey("cart-5"))
	if err != nil {
		return err
	}
	his, err := s.as("bob").PlaceOrder(ctx, basket(tea, 1), client.WithKey("cart-5"))
	if err != nil {
		return err
	}
	s.check(!his.Replayed && his.Value.ID != hers.Value.ID, "Bob has an order of his own, not Alice's answer")
	_, err = s.as("bob").GetOrder(ctx, hers.Value.ID)
	s.check(client.HasCode(err, openapi.ProblemCodeOrderNotFound), "and he cannot see hers: 404, as if there were none")
	return nil
}

func declinedCard(ctx context.Context, s *step) error {
	stock, alice := s.onHand(ctx, tea), s.as("alice")
	order := basket(tea, 4)
	order.PaymentMethod = "pm_card_visa_chargeDeclined"
	placed, err := alice.PlaceOrder(ctx, order)
	if err != nil {
		return err
	}
	id := placed.Value.ID
	if _, err := s.paid(ctx, id, openapi.PaymentStatusFailed); err != nil {
		return err
	}
	now, err := alice.GetOrder(ctx, id)
	if err != nil {
		return err
	}
	why := now.Value.Cancellation
	s.check(now.Value.Status == openapi.OrderStatusCancelled && why != nil && why.Reason == "payment_failed",
		"the order is cancelled: payment_failed")
	s.check(s.onHand(ctx, tea) == stock, "its stock is back on the shelf")
	s.showLedger(id)
	s.check(s.account(id) == account{declined: 1}, "the provider declined, and charged nothing")
	return nil
}

// none tells whether every call went well.
func none(errs []error) bool {
	for _, err := range errs {
		if err != nil {
			return false
		}
	}
	return true
}
