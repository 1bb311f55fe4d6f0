package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

// Place an order so that it is placed once, whatever happens to the network or to this process. The key is noted beside
// the cart before the first attempt: a later call for the same cart uses the same key and gets the same order.
func Example_placeAnOrder() {
	token := func(context.Context) (string, error) { return "an access token with orders:write", nil }
	orders, err := client.New("http://127.0.0.1:8080", token)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	order, err := orders.PlaceOrder(ctx, openapi.PlaceOrderRequest{
		Currency: "EUR",
		Lines:    []openapi.OrderLineRequest{{SKU: "TEA-001", Quantity: 2}},
		ShippingAddress: openapi.Address{
			Name: "Alice Ames", Line1: "1 High Street", City: "Berlin", PostalCode: "10115", Country: "DE",
		},
		PaymentMethod: "pm_card_visa",
	}, client.WithKey("cart-4711"))

	var gaveUp *client.GaveUp
	var refused *client.Problem
	switch {
	case errors.As(err, &gaveUp): // first, since it can wrap a Problem
		fmt.Println("the outcome is not known yet; try again later with the key", gaveUp.Key)
	case errors.As(err, &refused):
		fmt.Println("not placed:", refused.Code, refused.Detail)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("placed:", order.Value.ID, order.ETag, "before this call:", order.Replayed)
	}
}

// Raise a price without losing what another editor does to the same product at the same time.
func ExampleUpdate() {
	orders, err := client.New("http://127.0.0.1:8080", client.StaticToken("an access token with catalog:write"))
	if err != nil {
		log.Fatal(err)
	}
	product, err := client.Update(context.Background(),
		func(ctx context.Context) (client.Answer[openapi.Product], error) {
			return orders.GetProduct(ctx, "TEA-001")
		},
		func(p openapi.Product) (openapi.PutProductRequest, error) {
			if !p.Active {
				return openapi.PutProductRequest{}, errors.New("not for sale any more")
			}
			p.Price.Amount += 100
			return openapi.PutProductRequest{Name: p.Name, Price: p.Price, Active: p.Active}, nil
		},
		func(ctx context.Context, tag client.ETag, p openapi.PutProductRequest) (client.Answer[openapi.Product], error) {
			return orders.PutProduct(ctx, "TEA-001", tag, p)
		})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(product.Value.Price.Amount, product.ETag)
}

// Ship an order. Should the answer be lost, the retry is refused as stale; the client then reads the order, finds the
// parcel that it was told of, and returns it as its own.
func ExampleClient_ShipOrder() {
	orders, err := client.New("http://127.0.0.1:8080", client.StaticToken("an access token with orders:fulfil"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	order, err := orders.GetOrder(ctx, uuid.MustParse("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42"))
	if err != nil {
		log.Fatal(err)
	}
	parcel := openapi.ShipOrderRequest{Carrier: "DHL", TrackingNumber: "JD014600003RU"}
	shipped, err := orders.ShipOrder(ctx, order.Value.ID, order.ETag, parcel)
	if client.HasCode(err, openapi.ProblemCodeVersionConflict) {
		fmt.Println("the order has changed since it was packed: look at it again before anything leaves")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shipped.Value.Shipment.TrackingNumber, shipped.Value.Status)
}
