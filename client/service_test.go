package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/testkit"
)

// service is the running service behind a proxy that can lose what passes.
type service struct {
	*testkit.Service
	proxy *testkit.Proxy
}

func start(t *testing.T) service {
	t.Helper()
	s := testkit.Start(t)
	s.Product(t, "TEA-001", 1999, 100)
	return service{s, testkit.StartProxy(t, s.URL)}
}

// as returns a client through the proxy. Every attempt has a connection of its own: on a reused one that breaks, Go's
// transport itself resends a keyed request, and the client's own retry would go untested.
func (s service) as(t *testing.T, actor string) *client.Client {
	t.Helper()
	token, err := s.Sandbox.Token(actor, "default", testkit.AllScopes+" orders:admin", time.Hour)
	require.NoError(t, err)
	c, err := client.New(s.proxy.URL, client.StaticToken(token), client.WithLimit(testkit.Wait),
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
	require.NoError(t, err)
	return c
}

func home() openapi.Address {
	return openapi.Address{Name: "Alice Ames", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE"}
}

func teas(n int64) openapi.PlaceOrderRequest {
	return openapi.PlaceOrderRequest{
		Currency: "EUR", Lines: []openapi.OrderLineRequest{{SKU: "TEA-001", Quantity: n}},
		ShippingAddress: home(), PaymentMethod: "pm_card_visa",
	}
}

// placed places an order and waits until it is paid.
func (s service) placed(t *testing.T, c *client.Client, n int64) openapi.OrderID {
	t.Helper()
	order, err := c.PlaceOrder(t.Context(), teas(n))
	require.NoError(t, err)
	testkit.Eventually(t, "payment", func() bool {
		p, err := c.GetPayment(t.Context(), order.Value.ID)
		return err == nil && p.Value.Status == openapi.PaymentStatusSucceeded
	})
	return order.Value.ID
}

// Ensure every operation of the contract answers through the client with its value, its tag and its location.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.StartWorker(t)
	ctx, c := t.Context(), s.as(t, "alice")

	mug := openapi.PutProductRequest{Name: "Mug", Price: openapi.Money{Amount: 1250, Currency: "EUR"}, Active: true}
	product, err := c.CreateProduct(ctx, "MUG-001", mug)
	require.NoError(t, err)
	require.Equal(t, "/v1/products/MUG-001", product.Location)
	mug.Price.Amount = 1300
	edited, err := c.PutProduct(ctx, "MUG-001", product.ETag, mug)
	require.NoError(t, err)
	read, err := c.GetProduct(ctx, "MUG-001")
	require.NoError(t, err)
	require.Equal(t, edited, read)
	stock, err := c.AdjustStock(ctx, "MUG-001", openapi.AdjustStockRequest{Delta: 7})
	require.NoError(t, err)
	s.Stocked(t, "default", "MUG-001", 7)
	onHand, err := c.GetStock(ctx, "MUG-001")
	require.NoError(t, err)
	require.Equal(t, stock, onHand)
	products, err := c.ListProducts(ctx, openapi.ListProductsParams{Limit: new(openapi.Limit(1))})
	require.NoError(t, err)
	require.Equal(t, []openapi.Product{read.Value}, products.Value.Items)
	require.True(t, products.Value.Page.HasMore)

	shipped, cancelled := s.placed(t, c, 2), s.placed(t, c, 1)
	order, err := c.GetOrder(ctx, shipped)
	require.NoError(t, err)
	moved, err := c.ChangeShippingAddress(ctx, shipped, order.ETag, home())
	require.NoError(t, err)
	require.NotEqual(t, order.ETag, moved.ETag)
	left, err := c.ShipOrder(ctx, shipped, moved.ETag, openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "JD01"})
	require.NoError(t, err)
	require.Equal(t, openapi.OrderStatusShipped, left.Value.Status)
	refund, err := c.RefundOrder(ctx, shipped, openapi.RefundOrderRequest{Amount: openapi.Money{Amount: 1999, Currency: "EUR"}})
	require.NoError(t, err)
	require.Equal(t, "/v1/orders/"+shipped.String()+"/payment", refund.Location)
	payment, err := c.GetPayment(ctx, shipped)
	require.NoError(t, err)
	require.EqualValues(t, 1999, payment.Value.Refunded.Amount)

	other, err := c.GetOrder(ctx, cancelled)
	require.NoError(t, err)
	gone, err := c.CancelOrder(ctx, cancelled, other.ETag, openapi.CancelOrderRequest{Reason: new("changed my mind")})
	require.NoError(t, err)
	require.Equal(t, openapi.OrderStatusCancelled, gone.Value.Status)
	list, err := c.ListOrders(ctx, openapi.ListOrdersParams{Status: new(openapi.OrderStatusCancelled)})
	require.NoError(t, err)
	require.Len(t, list.Value.Items, 1)
	require.Equal(t, cancelled, list.Value.Items[0].ID)
}

// Ensure the answer to a keyed write may be lost and the call still returns it, without a second write.
func TestLostAnswerOfAKeyedWrite(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.StartWorker(t)
	ctx, c := t.Context(), s.as(t, "alice")

	s.proxy.LoseAnswers(2)
	placed, err := c.PlaceOrder(ctx, teas(3))
	require.NoError(t, err)
	require.True(t, placed.Replayed)
	require.Equal(t, 1, s.Count(t, "orders"))

	id := s.placed(t, c, 3)
	s.proxy.LoseAnswers(1)
	refund, err := c.RefundOrder(ctx, id, openapi.RefundOrderRequest{Amount: openapi.Money{Amount: 5, Currency: "EUR"}})
	require.NoError(t, err)
	require.True(t, refund.Replayed)
	require.Equal(t, 1, s.Count(t, "refunds"))

	order, err := c.GetOrder(ctx, id)
	require.NoError(t, err)
	s.proxy.LoseAnswers(1)
	cancelled, err := c.CancelOrder(ctx, id, order.ETag, openapi.CancelOrderRequest{})
	require.NoError(t, err)
	require.True(t, cancelled.Replayed, "the tag is stale by now, and the key is looked at first")

	s.proxy.LoseAnswers(1)
	stock, err := c.AdjustStock(ctx, "TEA-001", openapi.AdjustStockRequest{Delta: -1})
	require.NoError(t, err)
	s.Stocked(t, "default", "TEA-001", -1)
	require.True(t, stock.Replayed)
	require.EqualValues(t, 96, stock.Value.OnHand)
}

// Ensure a request that never arrived is sent again and counts as the first.
func TestLostRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.proxy.LoseRequests(2)
	placed, err := s.as(t, "alice").PlaceOrder(t.Context(), teas(1))
	require.NoError(t, err)
	require.False(t, placed.Replayed)
	require.Equal(t, 1, s.Count(t, "orders"))
}

// Ensure a versioned write whose answer was lost is known again as one's own, although its retry is refused as stale.
func TestLostAnswerOfAVersionedWrite(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.StartWorker(t)
	ctx, c := t.Context(), s.as(t, "alice")
	id := s.placed(t, c, 1)
	order, err := c.GetOrder(ctx, id)
	require.NoError(t, err)

	elsewhere := home()
	elsewhere.City, elsewhere.Line2 = "Bonn", new("Flat 3")
	s.proxy.LoseAnswers(1)
	moved, err := c.ChangeShippingAddress(ctx, id, order.ETag, elsewhere)
	require.NoError(t, err)
	require.True(t, moved.Replayed)
	require.Equal(t, elsewhere, moved.Value.ShippingAddress)

	s.proxy.LoseAnswers(1)
	left, err := c.ShipOrder(ctx, id, moved.ETag, openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "JD01"})
	require.NoError(t, err)
	require.True(t, left.Replayed)
	now, err := c.GetOrder(ctx, id)
	require.NoError(t, err)
	require.Equal(t, now.ETag, left.ETag)

	mug := openapi.PutProductRequest{Name: "Mug", Price: openapi.Money{Amount: 1250, Currency: "EUR"}, Active: true}
	s.proxy.LoseAnswers(1)
	created, err := c.CreateProduct(ctx, "MUG-001", mug)
	require.NoError(t, err)
	require.True(t, created.Replayed)
	mug.Price.Amount = 1300
	s.proxy.LoseAnswers(1)
	edited, err := c.PutProduct(ctx, "MUG-001", created.ETag, mug)
	require.NoError(t, err)
	require.True(t, edited.Replayed)
	require.EqualValues(t, 1300, edited.Value.Price.Amount)
}

// Ensure a conflict with another caller stays a conflict: after a lost request, and where nothing was lost.
func TestSomebodyElsesChangeIsAConflict(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.StartWorker(t)
	ctx, c := t.Context(), s.as(t, "alice")
	id := s.placed(t, c, 1)
	order, err := c.GetOrder(ctx, id)
	require.NoError(t, err)
	first := openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "FIRST"}
	_, err = c.ShipOrder(ctx, id, order.ETag, first)
	require.NoError(t, err)

	s.proxy.LoseRequests(1)
	_, err = c.ShipOrder(ctx, id, order.ETag, openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "SECOND"})
	require.True(t, client.HasCode(err, openapi.ProblemCodeVersionConflict), err)
	_, err = c.ShipOrder(ctx, id, order.ETag, first)
	require.True(t, client.HasCode(err, openapi.ProblemCodeVersionConflict), "nothing was lost, so it cannot be its own")
}

// Ensure Update merges what eight editors do at once: no change is lost and no editor sees a conflict.
func TestUpdateLosesNobodysChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.as(t, "editor")
	var all sync.WaitGroup
	gate := make(chan struct{})
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			<-gate
			_, errs[i] = client.Update(t.Context(),
				func(ctx context.Context) (client.Answer[openapi.Product], error) { return c.GetProduct(ctx, "TEA-001") },
				func(p openapi.Product) (openapi.PutProductRequest, error) {
					p.Price.Amount++
					return openapi.PutProductRequest{Name: p.Name, Price: p.Price, Active: p.Active}, nil
				},
				func(ctx context.Context, tag client.ETag, p openapi.PutProductRequest) (client.Answer[openapi.Product], error) {
					return c.PutProduct(ctx, "TEA-001", tag, p)
				})
		})
	}
	close(gate)
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	tea, err := c.GetProduct(t.Context(), "TEA-001")
	require.NoError(t, err)
	require.EqualValues(t, 1999+8, tea.Value.Price.Amount)
}

// Ensure Update repeats a change on the new state when another caller was faster, and that a refusal ends the update.
func TestUpdateReadsAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, c := t.Context(), s.as(t, "alice")
	placed, err := c.PlaceOrder(ctx, teas(1))
	require.NoError(t, err)
	id := placed.Value.ID

	var seen []openapi.OrderStatus
	_, err = client.Update(ctx,
		func(ctx context.Context) (client.Answer[openapi.Order], error) { return c.GetOrder(ctx, id) },
		func(o openapi.Order) (openapi.Address, error) {
			if seen = append(seen, o.Status); len(seen) == 1 { // between this read and its write, the order is cancelled
				_, err := c.CancelOrder(ctx, id, placed.ETag, openapi.CancelOrderRequest{})
				require.NoError(t, err)
			}
			return home(), nil
		},
		func(ctx context.Context, tag client.ETag, to openapi.Address) (client.Answer[openapi.Order], error) {
			return c.ChangeShippingAddress(ctx, id, tag, to)
		})
	require.True(t, client.HasCode(err, openapi.ProblemCodeAddressNotChangeable), err)
	require.Equal(t, []openapi.OrderStatus{openapi.OrderStatusOpen, openapi.OrderStatusCancelled}, seen)
}

// Ensure a refusal comes back at once as a *Problem with all that the service said.
func TestProblems(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, c := t.Context(), s.as(t, "alice")

	bad := teas(0)
	bad.Currency = "euro"
	_, err := c.PlaceOrder(ctx, bad)
	var problem *client.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, http.StatusBadRequest, problem.Status)
	require.Equal(t, openapi.ProblemCodeValidationFailed, problem.Code)
	require.NotEmpty(t, problem.Detail)
	fields := make([]string, len(problem.Fields))
	for i, f := range problem.Fields {
		fields[i] = f.Field
	}
	slices.Sort(fields)
	require.Equal(t, []string{"currency", "lines/0/quantity"}, slices.Compact(fields))

	_, err = c.GetOrder(ctx, uuid.New())
	require.True(t, client.HasCode(err, openapi.ProblemCodeOrderNotFound), err)
	_, err = c.ChangeShippingAddress(ctx, uuid.New(), "", home())
	require.True(t, client.HasCode(err, openapi.ProblemCodePreconditionRequired), "an empty tag is none: %v", err)
}

// Ensure the caller's own key is the one that is sent: its second use with another order is refused.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, c := t.Context(), s.as(t, "alice")
	own := client.WithKey("cart/42,it's~mine\"")
	first, err := c.PlaceOrder(ctx, teas(1), own)
	require.NoError(t, err)
	again, err := c.PlaceOrder(ctx, teas(1), own)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Value, again.Value)
	_, err = c.PlaceOrder(ctx, teas(2), own)
	require.True(t, client.HasCode(err, openapi.ProblemCodeIdempotencyKeyReused), err)
	require.Equal(t, 1, s.Count(t, `idempotency_keys WHERE key = 'cart/42,it''s~mine"'`))
	for _, key := range []string{"", "with space", "näh", string(make([]byte, 256))} {
		_, err = c.PlaceOrder(ctx, teas(1), client.WithKey(key))
		require.ErrorContains(t, err, "Idempotency-Key")
	}
}
