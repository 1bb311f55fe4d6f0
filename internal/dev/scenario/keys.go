package scenario

import (
	"bytes"
	"net/http"
	"slices"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

func placeOrder(r *Run) {
	alice := r.as("alice")
	order := must2(alice.PlaceOrder(r.ctx, basket(tea, 2), client.WithKey(r.key("cart"))))(r)
	id := order.Value.ID
	r.check(order.Location == "/v1/orders/"+id.String() && order.ETag != "", "201 with where it is and which version it has")
	r.paid(id, openapi.PaymentStatusSucceeded)
	payment := must2(alice.GetPayment(r.ctx, id))(r)
	equal(r, openapi.PaymentStatusSucceeded, payment.Value.Status, "the payment has succeeded")
	now := must2(alice.GetOrder(r.ctx, id))(r)
	equal(r, order.ETag, now.ETag, "the charge has not made the order's version stale")
	r.chargedOnce(id, 2*teaPrice)
}

func lostAnswer(r *Run) {
	n, before := r.knobs["answers"], r.orders()
	r.Proxy.LoseAnswers(n)
	order := must2(r.lossily("alice").PlaceOrder(r.ctx, basket(tea, 2), client.WithKey(r.key("cart"))))(r)
	equal(r, http.StatusCreated, r.Proxy.Lost().Status, "the service had answered 201, and the connection was cut")
	equal(r, n+1, len(r.Told()), "the client sent the same key and the same bytes until an answer came")
	r.check(order.Replayed, "it got the answer that was lost")
	equal(r, before+1, r.orders(), "there is one order more")
	r.chargedOnce(order.Value.ID, 2*teaPrice)
}

func duplicatesAtOnce(r *Run) {
	receipts := r.duplicates(r.knobs["duplicates"], r.key("cart"))
	r.chargedOnce(receipts[0].Value.ID, teaPrice)
}

// duplicates sends n requests with one key at once, and checks that one of them works.
func (r *Run) duplicates(n int, key string) []client.Answer[openapi.OrderReceipt] {
	before, alice := r.orders(), r.as("alice")
	receipts := make([]client.Answer[openapi.OrderReceipt], n)
	errs, all := r.crowd(n, stockRow(tea), 1, func(i int) (err error) {
		receipts[i], err = alice.PlaceOrder(r.ctx, basket(tea, 1), client.WithKey(key))
		return err
	})
	accepted := slices.DeleteFunc(slices.Clone(all), func(x Exchange) bool { return x.Status != http.StatusCreated })
	failed := slices.ContainsFunc(errs, func(err error) bool { return err != nil })
	r.check(len(accepted) == n && !failed, "all %d were answered 201", n)
	equal(r, n-1, count(accepted, Exchange.Replayed), "one did the work, %d got its answer", n-1)
	equal(r, len(accepted), count(accepted, func(x Exchange) bool { return bytes.Equal(x.Answer, accepted[0].Answer) }),
		"all answers have the same bytes")
	equal(r, before+1, r.orders(), "there is one order more")
	return receipts
}

func reuseKey(r *Run) {
	alice, key := r.as("alice"), client.WithKey(r.key("cart"))
	must2(alice.PlaceOrder(r.ctx, basket(tea, 1), key))(r)
	before, stock := r.orders(), r.OnHand(r, tea)
	_, err := alice.PlaceOrder(r.ctx, basket(tea, 3), key)
	r.check(r.last().Status == http.StatusUnprocessableEntity && client.HasCode(err, openapi.ProblemCodeIdempotencyKeyReused),
		"422 idempotency_key_reused")
	r.check(r.orders() == before && r.OnHand(r, tea) == stock, "no order, and no stock gone")
	again := must2(alice.PlaceOrder(r.ctx, basket(tea, 1), key))(r)
	r.check(again.Replayed, "the first request still gets its answer under the key")
}

func borrowKey(r *Run) {
	key := client.WithKey(r.key("cart"))
	hers := must2(r.as("alice").PlaceOrder(r.ctx, basket(tea, 1), key))(r)
	his := must2(r.as("bob").PlaceOrder(r.ctx, basket(tea, 1), key))(r)
	r.check(!his.Replayed && his.Value.ID != hers.Value.ID, "Bob has an order of his own, not Alice's answer")
	_, err := r.as("bob").GetOrder(r.ctx, hers.Value.ID)
	r.check(client.HasCode(err, openapi.ProblemCodeOrderNotFound), "and he cannot see hers: 404, as if there were none")
}

// expiredKey lets a key expire without waiting for its 72 hours.
func expiredKey(r *Run) {
	key := r.key("cart")
	first := must2(r.as("alice").PlaceOrder(r.ctx, basket(tea, 1), client.WithKey(key)))(r)
	again := must2(r.as("alice").PlaceOrder(r.ctx, basket(tea, 1), client.WithKey(key)))(r)
	r.check(again.Replayed, "within its life the key brings the first answer")
	r.mark("postgres", "73 hours pass: the scenario moves the record's times back")
	expired := must2(r.DB.Exec(r.ctx, `UPDATE idempotency_keys
		SET created_at = created_at - interval '73 hours', expires_at = expires_at - interval '73 hours'
		WHERE tenant_id = 'default' AND actor_id = 'alice' AND operation = 'place-order' AND key = $1`, key))(r)
	equal(r, int64(1), expired.RowsAffected(), "the key has one record")
	receipts := r.duplicates(r.knobs["retries"], key)
	r.check(receipts[0].Value.ID != first.Value.ID, "it is another order than the first one")
	equal(r, 1, r.Count(r, `idempotency_keys WHERE key = $1 AND expires_at > now()`, key), "the record was replaced, not added to")
	r.chargedOnce(first.Value.ID, teaPrice)
	r.chargedOnce(receipts[0].Value.ID, teaPrice)
}

func declinedCard(r *Run) {
	stock, alice := r.OnHand(r, tea), r.as("alice")
	order := basket(tea, 4)
	order.PaymentMethod = "pm_card_visa_chargeDeclined"
	id := must2(alice.PlaceOrder(r.ctx, order))(r).Value.ID
	r.paid(id, openapi.PaymentStatusFailed)
	now := must2(alice.GetOrder(r.ctx, id))(r)
	why := now.Value.Cancellation
	r.check(now.Value.Status == openapi.OrderStatusCancelled && why != nil && why.Reason == "payment_failed",
		"the order is cancelled: payment_failed")
	equal(r, stock, r.OnHand(r, tea), "its stock is back on the shelf")
	r.showLedger(id)
	equal(r, account{declined: 1}, r.account(id), "the provider declined, and charged nothing")
}
