package httpapi

import (
	"context"
	"net/http"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

// ChangeShippingAddress implements change-shipping-address.
func (s *server) ChangeShippingAddress(
	ctx context.Context, r openapi.ChangeShippingAddressRequestObject,
) (openapi.ChangeShippingAddressResponseObject, error) {
	versions, err := orderResource(actorOf(ctx).Tenant, r.OrderID).expected(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	o, err := s.app.ChangeShippingAddress(ctx, actorOf(ctx), app.ChangeAddressInput{
		OrderID: r.OrderID, Expected: versions, Address: addressOf(*r.Body),
	})
	if err != nil {
		return nil, err
	}
	return openapi.ChangeShippingAddress200JSONResponse{
		Body: order(o), Headers: openapi.ChangeShippingAddress200ResponseHeaders{ETag: orderTag(o)},
	}, nil
}

// ShipOrder implements ship-order.
func (s *server) ShipOrder(ctx context.Context, r openapi.ShipOrderRequestObject) (openapi.ShipOrderResponseObject, error) {
	versions, err := orderResource(actorOf(ctx).Tenant, r.OrderID).expected(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	o, err := s.app.ShipOrder(ctx, actorOf(ctx), app.ShipOrderInput{
		OrderID: r.OrderID, Expected: versions, Carrier: r.Body.Carrier, TrackingNumber: r.Body.TrackingNumber,
	})
	if err != nil {
		return nil, err
	}
	return openapi.ShipOrder200JSONResponse{
		Body: order(o), Headers: openapi.ShipOrder200ResponseHeaders{ETag: orderTag(o)},
	}, nil
}

// CancelOrder implements cancel-order.
func (s *server) CancelOrder(
	ctx context.Context, r openapi.CancelOrderRequestObject,
) (openapi.CancelOrderResponseObject, error) {
	versions, err := orderResource(actorOf(ctx).Tenant, r.OrderID).expected(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	input := app.CancelOrderInput{OrderID: r.OrderID, Expected: versions}
	if r.Body != nil {
		input.Reason = text(r.Body.Reason)
	}
	outcome, err := s.app.CancelOrder(ctx, actorOf(ctx), app.Keyed[domain.OrderState]{
		Key:    r.Params.IdempotencyKey,
		Route:  routeIdentity(http.MethodPost, "/v1/orders/{order_id}/cancellation", r.OrderID.String()),
		Render: render(cancellationReceipt),
	}, input)
	return reply(outcome), err
}

func cancellationReceipt(o domain.OrderState) (int, replayHeader, any) {
	return http.StatusOK, replayHeader{ETag: orderTag(o)}, openapi.CancellationReceipt{
		ID: o.ID, Status: openapi.OrderStatus(o.Status), CancelledAt: o.Cancellation.CancelledAt,
	}
}

// RefundOrder implements refund-order.
func (s *server) RefundOrder(
	ctx context.Context, r openapi.RefundOrderRequestObject,
) (openapi.RefundOrderResponseObject, error) {
	outcome, err := s.app.RefundOrder(ctx, actorOf(ctx), app.Keyed[app.RefundReceipt]{
		Key:    r.Params.IdempotencyKey,
		Route:  routeIdentity(http.MethodPost, "/v1/orders/{order_id}/refunds", r.OrderID.String()),
		Render: render(refundReceipt),
	}, app.RefundOrderInput{
		OrderID: r.OrderID, Amount: r.Body.Amount.Amount, Currency: r.Body.Amount.Currency, Reason: text(r.Body.Reason),
	})
	return reply(outcome), err
}

func refundReceipt(r app.RefundReceipt) (int, replayHeader, any) {
	return http.StatusAccepted, replayHeader{Location: "/v1/orders/" + r.OrderID.String() + "/payment"},
		openapi.RefundReceipt{
			ID: r.Refund.ID, OrderID: r.OrderID, Amount: money(r.Refund.Amount), Status: openapi.RefundStatus(r.Refund.Status),
		}
}
