package httpapi

import (
	"context"
	"net/http"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

// ListProducts implements list-products.
func (s *server) ListProducts(
	ctx context.Context, r openapi.ListProductsRequestObject,
) (openapi.ListProductsResponseObject, error) {
	after, err := productAfter(r.Params.After)
	if err != nil {
		return nil, err
	}
	var active *bool
	if r.Params.Status != nil {
		active = new(*r.Params.Status == openapi.ProductStatusActive)
	}
	limit := limitOf(r.Params.Limit)
	page, err := s.app.ListProducts(ctx, actorOf(ctx), active, after, limit)
	if err != nil {
		return nil, err
	}
	items := make([]openapi.Product, len(page.Items))
	for i, p := range page.Items {
		items[i] = product(p)
	}
	return openapi.ListProducts200JSONResponse{
		Body: openapi.ProductList{Items: items, Page: pageOf(page, limit, func(p domain.ProductState) string {
			return productCursor(p.SKU)
		})},
		Headers: openapi.ListProducts200ResponseHeaders{CacheControl: cacheControl},
	}, nil
}

// GetProduct implements get-product.
func (s *server) GetProduct(ctx context.Context, r openapi.GetProductRequestObject) (openapi.GetProductResponseObject, error) {
	p, err := s.app.GetProduct(ctx, actorOf(ctx), r.SKU)
	if err != nil {
		return nil, err
	}
	return openapi.GetProduct200JSONResponse{
		Body:    product(p),
		Headers: openapi.GetProduct200ResponseHeaders{ETag: productTag(p), CacheControl: cacheControl},
	}, nil
}

// PutProduct implements put-product.
func (s *server) PutProduct(ctx context.Context, r openapi.PutProductRequestObject) (openapi.PutProductResponseObject, error) {
	input := app.PutProductInput{SKU: r.SKU, Details: domain.ProductDetails{
		Name: r.Body.Name, Price: toAPIMoney(r.Body.Price), Active: r.Body.Active,
	}}
	var err error
	input.Create, input.Expected, err = createOrEdit(productResource(actorOf(ctx).Tenant, r.SKU), r.Params)
	if err != nil {
		return nil, err
	}
	p, err := s.app.PutProduct(ctx, actorOf(ctx), input)
	if err != nil {
		return nil, err
	}
	if input.Create {
		return openapi.PutProduct201JSONResponse{
			Body:    product(p),
			Headers: openapi.PutProduct201ResponseHeaders{ETag: productTag(p), Location: "/v1/products/" + p.SKU},
		}, nil
	}
	return openapi.PutProduct200JSONResponse{
		Body: product(p), Headers: openapi.PutProduct200ResponseHeaders{ETag: productTag(p)},
	}, nil
}

// createOrEdit decides whether a PUT creates (If-None-Match: *) or edits (If-Match). Exactly one of the headers is
// required.
func createOrEdit(
	product resource, params openapi.PutProductParams,
) (create bool, versions app.Expected, err error) {
	switch ifMatch, ifNoneMatch := params.IfMatch, params.IfNoneMatch; {
	case ifMatch != nil && ifNoneMatch != nil:
		return false, nil, errInvalidPrecondition
	case ifNoneMatch != nil:
		list, err := parseTags(*ifNoneMatch)
		if err != nil || !list.any {
			return false, nil, errInvalidPrecondition
		}
		return true, nil, nil
	case ifMatch != nil:
		versions, err = product.expected(*ifMatch)
		return false, versions, err
	default:
		return false, nil, errPreconditionRequired
	}
}

// GetStock implements get-stock.
func (s *server) GetStock(ctx context.Context, r openapi.GetStockRequestObject) (openapi.GetStockResponseObject, error) {
	k, err := s.app.GetStock(ctx, actorOf(ctx), r.SKU)
	if err != nil {
		return nil, err
	}
	return openapi.GetStock200JSONResponse{
		Body:    openapi.Stock{SKU: k.SKU, OnHand: k.OnHand},
		Headers: openapi.GetStock200ResponseHeaders{CacheControl: cacheControl},
	}, nil
}

// AdjustStock implements adjust-stock.
func (s *server) AdjustStock(
	ctx context.Context, r openapi.AdjustStockRequestObject,
) (openapi.AdjustStockResponseObject, error) {
	outcome, err := s.app.AdjustStock(ctx, actorOf(ctx), app.Keyed[domain.StockState]{
		Key:    r.Params.IdempotencyKey,
		Route:  routeIdentity(http.MethodPost, "/v1/products/{sku}/stock-adjustments", r.SKU),
		Render: render(stockReceipt),
	}, app.AdjustStockInput{SKU: r.SKU, Delta: r.Body.Delta, Reason: text(r.Body.Reason)})
	return reply(outcome), err
}

func stockReceipt(k domain.StockState) (int, replayHeader, any) {
	return http.StatusOK, replayHeader{}, openapi.Stock{SKU: k.SKU, OnHand: k.OnHand}
}
