package httpapi

import (
	"context"
	"net/http"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

// cacheControl allows private caches only, which must revalidate every time; the ETag makes that cheap.
const cacheControl = "private, no-cache"

// PlaceOrder implements place-order.
func (s *server) PlaceOrder(
	ctx context.Context, r openapi.PlaceOrderRequestObject,
) (openapi.PlaceOrderResponseObject, error) {
	lines := make([]domain.Item, len(r.Body.Lines))
	for i, l := range r.Body.Lines {
		lines[i] = domain.Item{SKU: l.SKU, Quantity: l.Quantity}
	}
	outcome, err := s.app.PlaceOrder(ctx, actorOf(ctx), app.Keyed[domain.OrderState]{
		Key:    r.Params.IdempotencyKey,
		Route:  routeIdentity(http.MethodPost, "/v1/orders"),
		Render: render(orderReceipt),
	}, app.PlaceOrderInput{
		Currency:      r.Body.Currency,
		Lines:         lines,
		Address:       addressOf(r.Body.ShippingAddress),
		PaymentMethod: r.Body.PaymentMethod,
	})
	return reply(outcome), err
}

func orderReceipt(o domain.OrderState) (int, replayHeader, any) {
	return http.StatusCreated, replayHeader{Location: "/v1/orders/" + o.ID.String(), ETag: orderTag(o)},
		openapi.OrderReceipt{ID: o.ID, Status: openapi.OrderStatus(o.Status), Total: money(o.Total), CreatedAt: o.CreatedAt}
}

// GetOrder implements get-order.
func (s *server) GetOrder(ctx context.Context, r openapi.GetOrderRequestObject) (openapi.GetOrderResponseObject, error) {
	o, err := s.app.GetOrder(ctx, actorOf(ctx), r.OrderID)
	if err != nil {
		return nil, err
	}
	return openapi.GetOrder200JSONResponse{
		Body:    order(o),
		Headers: openapi.GetOrder200ResponseHeaders{ETag: orderTag(o), CacheControl: cacheControl},
	}, nil
}

// ListOrders implements list-orders.
func (s *server) ListOrders(ctx context.Context, r openapi.ListOrdersRequestObject) (openapi.ListOrdersResponseObject, error) {
	after, err := orderAfter(r.Params.After)
	if err != nil {
		return nil, err
	}
	limit := limitOf(r.Params.Limit)
	var status domain.OrderStatus
	if r.Params.Status != nil {
		status = domain.OrderStatus(*r.Params.Status)
	}
	page, err := s.app.ListOrders(ctx, actorOf(ctx), status, after, limit)
	if err != nil {
		return nil, err
	}
	items := make([]openapi.OrderSummary, len(page.Items))
	for i, o := range page.Items {
		items[i] = openapi.OrderSummary{
			ID: o.ID, Status: openapi.OrderStatus(o.Status), Total: money(o.Total),
			CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
		}
	}
	return openapi.ListOrders200JSONResponse{
		Body: openapi.OrderList{Items: items, Page: pageOf(page, limit, func(o domain.OrderState) string {
			return orderCursor(o.ID)
		})},
		Headers: openapi.ListOrders200ResponseHeaders{CacheControl: cacheControl},
	}, nil
}

// GetPayment implements get-payment.
func (s *server) GetPayment(ctx context.Context, r openapi.GetPaymentRequestObject) (openapi.GetPaymentResponseObject, error) {
	p, err := s.app.GetPayment(ctx, actorOf(ctx), r.OrderID)
	if err != nil {
		return nil, err
	}
	return openapi.GetPayment200JSONResponse{
		Body:    payment(p),
		Headers: openapi.GetPayment200ResponseHeaders{ETag: paymentResource(p.Tenant, p.OrderID).tag(p.Version), CacheControl: cacheControl},
	}, nil
}
