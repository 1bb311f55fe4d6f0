package scenario

import (
	"bytes"
	"net/http"
	"slices"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

func lostAnswer(r *Run) {
	before := r.orders()
	r.Proxy.LoseAnswers(1)
	order := must2(r.lossily("alice").PlaceOrder(r.ctx, basket(tea, 2), client.WithKey(r.key("cart"))))(r)
	equal(r, http.StatusCreated, r.Proxy.Lost(), "the service had answered 201, and the connection was cut")
	r.check(order.Replayed, "the client tried again with the same key and the same bytes, and got that answer")
	equal(r, before+1, r.orders(), "there is one order more")
	r.chargedOnce(order.Value.ID, 2*teaPrice)
}

func duplicatesAtOnce(r *Run) {
	n := r.knobs["duplicates"]
	before, alice := r.orders(), r.as("alice")
	receipts := make([]client.Answer[openapi.OrderReceipt], n)
	errs, all := r.crowd(n, stockRow(tea), 1, func(i int) (err error) {
		receipts[i], err = alice.PlaceOrder(r.ctx, basket(tea, 1), client.WithKey(r.key("cart")))
		return err
	})
	accepted := slices.DeleteFunc(slices.Clone(all), func(x Exchange) bool { return x.Status != http.StatusCreated })
	r.check(len(accepted) == n && none(errs), "all %d were answered 201", n)
	equal(r, n-1, count(accepted, Exchange.Replayed), "one did the work, %d got its answer", n-1)
	equal(r, n, count(accepted, func(x Exchange) bool { return bytes.Equal(x.Answer, accepted[0].Answer) }),
		"all answers have the same bytes")
	equal(r, before+1, r.orders(), "there is one order more")
	r.chargedOnce(receipts[0].Value.ID, teaPrice)
}

// none tells whether every call went well.
func none(errs []error) bool {
	return !slices.ContainsFunc(errs, func(err error) bool { return err != nil })
}
