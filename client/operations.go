package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"example.com/orders/client/openapi"
)

// KeyOption configures the Idempotency-Key of one call.
type KeyOption func(*string)

// WithKey makes a call carry the caller's own key, of 1 to 255 visible ASCII characters: to go on after a GaveUp, or
// after a restart of the caller, which has noted the key before it called.
func WithKey(key string) KeyOption { return func(k *string) { *k = key } }

func keyOf(options []KeyOption) (string, error) {
	key := uuid.NewString()
	for _, o := range options {
		o(&key)
	}
	if len(key) < 1 || len(key) > 255 {
		return "", errors.New("client: an Idempotency-Key has 1 to 255 characters")
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return "", errors.New("client: an Idempotency-Key has visible ASCII characters only")
		}
	}
	return key, nil
}

// PlaceOrder places an order. Its card is charged after the answer: watch GetPayment.
func (c *Client) PlaceOrder(
	ctx context.Context, order openapi.PlaceOrderRequest, options ...KeyOption,
) (Answer[openapi.OrderReceipt], error) {
	return keyed[openapi.OrderReceipt](ctx, c, options, func(key string) (*http.Request, error) {
		return openapi.NewPlaceOrderRequest(c.base, &openapi.PlaceOrderParams{IdempotencyKey: key}, order)
	})
}

// GetOrder reads an order and the tag that a change of it carries back.
func (c *Client) GetOrder(ctx context.Context, id openapi.OrderID) (Answer[openapi.Order], error) {
	r, err := openapi.NewGetOrderRequest(c.base, id, nil)
	return call[openapi.Order](ctx, c, r, err)
}

// ListOrders reads one page of orders. A list has no tag.
func (c *Client) ListOrders(ctx context.Context, page openapi.ListOrdersParams) (Answer[openapi.OrderList], error) {
	r, err := openapi.NewListOrdersRequest(c.base, &page)
	return call[openapi.OrderList](ctx, c, r, err)
}

// GetPayment reads the state of an order's charge and refunds.
func (c *Client) GetPayment(ctx context.Context, order openapi.OrderID) (Answer[openapi.Payment], error) {
	r, err := openapi.NewGetPaymentRequest(c.base, order, nil)
	return call[openapi.Payment](ctx, c, r, err)
}

// ChangeShippingAddress replaces an order's shipping address, unless the order has changed since tag.
func (c *Client) ChangeShippingAddress(
	ctx context.Context, id openapi.OrderID, tag ETag, to openapi.Address,
) (Answer[openapi.Order], error) {
	r, err := openapi.NewChangeShippingAddressRequest(c.base, id,
		&openapi.ChangeShippingAddressParams{IfMatch: string(tag)}, to)
	answer, err := call[openapi.Order](ctx, c, r, err)
	return recognise(answer, err, openapi.ProblemCodeVersionConflict,
		func() (Answer[openapi.Order], error) { return c.GetOrder(ctx, id) },
		func(o openapi.Order) bool { return sameAddress(o.ShippingAddress, to) })
}

// CancelOrder cancels an order, unless it has changed since tag. Its stock and its money go back.
func (c *Client) CancelOrder(
	ctx context.Context, id openapi.OrderID, tag ETag, why openapi.CancelOrderRequest, options ...KeyOption,
) (Answer[openapi.CancellationReceipt], error) {
	return keyed[openapi.CancellationReceipt](ctx, c, options, func(key string) (*http.Request, error) {
		return openapi.NewCancelOrderRequest(c.base, id,
			&openapi.CancelOrderParams{IdempotencyKey: key, IfMatch: string(tag)}, why)
	})
}

// ShipOrder marks an order as shipped, unless the order has changed since tag.
func (c *Client) ShipOrder(
	ctx context.Context, id openapi.OrderID, tag ETag, parcel openapi.ShipOrderRequest,
) (Answer[openapi.Order], error) {
	r, err := openapi.NewShipOrderRequest(c.base, id, &openapi.ShipOrderParams{IfMatch: string(tag)}, parcel)
	answer, err := call[openapi.Order](ctx, c, r, err)
	return recognise(answer, err, openapi.ProblemCodeVersionConflict,
		func() (Answer[openapi.Order], error) { return c.GetOrder(ctx, id) },
		func(o openapi.Order) bool {
			s := o.Shipment
			return s != nil && s.Carrier == parcel.Carrier && s.TrackingNumber == parcel.TrackingNumber
		})
}

// RefundOrder gives money back. It takes no version: refunds add up, and together they never exceed the charge.
func (c *Client) RefundOrder(
	ctx context.Context, order openapi.OrderID, refund openapi.RefundOrderRequest, options ...KeyOption,
) (Answer[openapi.RefundReceipt], error) {
	return keyed[openapi.RefundReceipt](ctx, c, options, func(key string) (*http.Request, error) {
		return openapi.NewRefundOrderRequest(c.base, order, &openapi.RefundOrderParams{IdempotencyKey: key}, refund)
	})
}

// ListProducts reads one page of the catalogue. A list has no tag.
func (c *Client) ListProducts(ctx context.Context, page openapi.ListProductsParams) (Answer[openapi.ProductList], error) {
	r, err := openapi.NewListProductsRequest(c.base, &page)
	return call[openapi.ProductList](ctx, c, r, err)
}

// GetProduct reads a product and the tag that an edit of it carries back.
func (c *Client) GetProduct(ctx context.Context, sku openapi.SKU) (Answer[openapi.Product], error) {
	r, err := openapi.NewGetProductRequest(c.base, sku, nil)
	return call[openapi.Product](ctx, c, r, err)
}

// CreateProduct is put-product for a sku that the catalogue does not have yet.
func (c *Client) CreateProduct(
	ctx context.Context, sku openapi.SKU, product openapi.PutProductRequest,
) (Answer[openapi.Product], error) {
	return c.putProduct(ctx, sku, openapi.PutProductParams{IfNoneMatch: new("*")}, product, openapi.ProblemCodeProductExists)
}

// PutProduct edits a product, unless it has changed since tag.
func (c *Client) PutProduct(
	ctx context.Context, sku openapi.SKU, tag ETag, product openapi.PutProductRequest,
) (Answer[openapi.Product], error) {
	return c.putProduct(ctx, sku, openapi.PutProductParams{IfMatch: new(string(tag))}, product,
		openapi.ProblemCodeVersionConflict)
}

func (c *Client) putProduct(
	ctx context.Context, sku openapi.SKU, precondition openapi.PutProductParams, product openapi.PutProductRequest,
	conflict openapi.ProblemCode,
) (Answer[openapi.Product], error) {
	r, err := openapi.NewPutProductRequest(c.base, sku, &precondition, product)
	answer, err := call[openapi.Product](ctx, c, r, err)
	return recognise(answer, err, conflict,
		func() (Answer[openapi.Product], error) { return c.GetProduct(ctx, sku) },
		func(p openapi.Product) bool {
			return p.Name == product.Name && p.Price == product.Price && p.Active == product.Active
		})
}

// GetStock reads the units on hand of a product. Stock has no tag: changes of it are deltas.
func (c *Client) GetStock(ctx context.Context, sku openapi.SKU) (Answer[openapi.Stock], error) {
	r, err := openapi.NewGetStockRequest(c.base, sku, nil)
	return call[openapi.Stock](ctx, c, r, err)
}

// AdjustStock adds a delta to the units on hand. It takes no version: deltas add up.
func (c *Client) AdjustStock(
	ctx context.Context, sku openapi.SKU, by openapi.AdjustStockRequest, options ...KeyOption,
) (Answer[openapi.Stock], error) {
	return keyed[openapi.Stock](ctx, c, options, func(key string) (*http.Request, error) {
		return openapi.NewAdjustStockRequest(c.base, sku, &openapi.AdjustStockParams{IdempotencyKey: key}, by)
	})
}

// keyed is call for an operation that carries a key.
func keyed[T any](
	ctx context.Context, c *Client, options []KeyOption, build func(key string) (*http.Request, error),
) (Answer[T], error) {
	key, err := keyOf(options)
	if err != nil {
		return Answer[T]{}, err
	}
	r, err := build(key)
	return call[T](ctx, c, r, err)
}

// call sends what a generated builder made and reads the answer.
func call[T any](ctx context.Context, c *Client, r *http.Request, err error) (Answer[T], error) {
	if err != nil {
		return Answer[T]{}, fmt.Errorf("client: build request: %w", err)
	}
	if r.Header.Get(headerIfMatch) == "" {
		r.Header.Del(headerIfMatch) // an empty tag is none, and the service says what it needs
	}
	x, err := c.send(r.WithContext(ctx))
	answer := Answer[T]{unsure: x.unsure}
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(x.body, &answer.Value); err != nil {
		return answer, fmt.Errorf("client: answer of %s %s: %w", r.Method, r.URL.Path, err)
	}
	h := x.response.Header
	answer.ETag, answer.Location = ETag(h.Get("ETag")), h.Get("Location")
	answer.Replayed = h.Get("Idempotent-Replayed") == "true"
	return answer, nil
}

// recognise decides whether a version conflict after a lost answer was caused by this call's own earlier attempt. The
// service stores no answer for writes that are guarded by a version (ship-order, change-shipping-address, put-product),
// so the second attempt conflicts with the version that the first one made. If the resource has the state that this
// call asked for, the call has succeeded. Otherwise, or if the resource cannot be read, the conflict is returned.
func recognise[T any](
	answer Answer[T], err error, conflict openapi.ProblemCode,
	read func() (Answer[T], error), asked func(T) bool,
) (Answer[T], error) {
	if !answer.unsure || !HasCode(err, conflict) {
		return answer, err
	}
	now, readErr := read()
	if readErr != nil {
		return answer, errors.Join(err, readErr)
	}
	if !asked(now.Value) {
		return answer, err
	}
	now.Replayed = true
	return now, nil
}

func sameAddress(a, b openapi.Address) bool {
	line2 := func(a openapi.Address) string {
		if a.Line2 == nil {
			return ""
		}
		return *a.Line2
	}
	same := line2(a) == line2(b)
	a.Line2, b.Line2 = nil, nil
	return same && a == b
}
