package stack

import (
	"context"
	"errors"
	"fmt"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/telemetry"
)

// product is one of the catalogue, in EUR cents and units.
type product struct {
	sku, name     string
	price, onHand int64
}

// catalogue is what a new database of tenant default holds.
func catalogue() []product {
	return []product{
		{"TEA-001", "Sencha, 100 g", 1999, 100_000},
		{"MUG-001", "Stoneware mug", 1250, 100_000},
		{"RARE-001", "Lamp, numbered edition", 25_000, 5},
	}
}

// Seed adds the catalogue through the service's own use cases. What is there already stays as it is.
func (s *Stack) Seed(ctx context.Context) error {
	c, err := config.LoadAPI(s.Lookup)
	if err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, c.Database, "orders-seed", s.Tel.Traces)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := postgres.NewStore(pool, outbox.In, postgres.NewSettings(c.Database, c.KeyWait), s.Tel.Metrics, s.Tel.Traces)
	service := app.New(store, postgres.NewReader(store), nil, app.Settings{KeyRetention: c.KeyRetention},
		telemetry.Findings{Metrics: s.Tel.Metrics, Log: s.Log})
	for _, p := range catalogue() {
		if err := addProduct(ctx, service, p); err != nil {
			return fmt.Errorf("seed %s: %w", p.sku, err)
		}
	}
	return nil
}

func addProduct(ctx context.Context, service *app.Service, p product) error {
	seeder := app.Actor{Tenant: "default", ID: "seed", Scopes: []string{app.ScopeCatalogWrite}}
	_, err := service.PutProduct(ctx, seeder, app.PutProductInput{SKU: p.sku, Create: true, Details: domain.ProductDetails{
		Name: p.name, Price: domain.Money{Amount: p.price, Currency: "EUR"}, Active: true,
	}})
	var refused *domain.Error
	if errors.As(err, &refused) && refused.Code == app.CodeProductExists {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = service.AdjustStock(ctx, seeder, app.Keyed[domain.StockState]{
		Key: "seed-" + p.sku, Route: "seed " + p.sku,
		Render: func(domain.StockState) (app.Reply, error) {
			return app.Reply{Status: 200, Header: []byte("{}"), Body: []byte{}}, nil
		},
	}, app.AdjustStockInput{SKU: p.sku, Delta: p.onHand})
	return err
}
