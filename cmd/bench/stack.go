package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/migrations"
)

const (
	tenant   = "bench"
	audience = "orders-api"
	issuer   = "http://sandbox.bench"
	// actors is how many customers place orders in turn, each with a token of its own.
	actors = 100
	// skuSpace is how many skus have names of one length, so that they sort by number.
	skuSpace = 900_000
	// maxLines is the lines of the larger order.
	maxLines = 5
	stopWait = 30 * time.Second
)

// bench holds what is running. Each start adds its stop function to stops.
type bench struct {
	options
	out      io.Writer
	began    time.Time
	dir      string // of the built binaries and pgbench's scripts
	server   *postgres.Server
	provider *sandbox.Server
	owner    string        // address of the database as its owner
	db       *pgxpool.Pool // of the superuser
	env      map[string]string
	tokens   [actors]string
	api      *service
	worker   *service // nil while it is stopped
	pgbench  string   // path of the program; empty: measure without a baseline
	stops    []func() error
}

func (b *bench) stop() error {
	var err error
	for _, stop := range slices.Backward(b.stops) {
		err = errors.Join(err, stop())
	}
	return err
}

func (b *bench) start(ctx context.Context) error {
	for _, start := range []func(context.Context) error{
		b.makeDir, b.startDatabase, b.startSandbox, b.build, b.seed, b.findBaseline, b.startAPI,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) makeDir(context.Context) (err error) {
	b.dir, err = os.MkdirTemp("", "orders-bench-")
	if err == nil {
		b.stops = append(b.stops, func() error { return os.RemoveAll(b.dir) })
	}
	return err
}

// startDatabase starts a temporary PostgreSQL with its default settings, so fsync is on. -statements adds an extension.
func (b *bench) startDatabase(ctx context.Context) error {
	settings := map[string]string{}
	if b.statements {
		settings["shared_preload_libraries"] = "pg_stat_statements"
	}
	var err error
	b.server, err = postgres.Start(ctx, postgres.Options{Durable: true, Settings: settings, Log: b.out})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	b.stops = append(b.stops, b.server.Stop)
	b.env = map[string]string{}
	if b.owner, b.env["DATABASE_URL"], err = b.server.Separate(ctx, "orders"); err != nil {
		return err
	}
	if b.db, err = pgxpool.New(ctx, b.server.URL("orders")); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	b.stops = append(b.stops, func() error { b.db.Close(); return nil })
	return b.migrate(ctx)
}

func (b *bench) migrate(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, b.owner)
	if err != nil {
		return fmt.Errorf("connect as owner: %w", err)
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	if b.statements {
		_, err = b.db.Exec(ctx, `CREATE EXTENSION pg_stat_statements`)
	}
	return err
}

// startSandbox starts the provider's stand-in in this process, so that the bench can wait for its ledger without polling.
func (b *bench) startSandbox(ctx context.Context) (err error) {
	b.provider, err = sandbox.Listen(ctx, sandbox.Settings{
		Addr: "127.0.0.1:0", Config: sandbox.Config{Issuer: issuer, Audience: audience, KeepAlive: true},
	})
	if err != nil {
		return err
	}
	serve, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- b.provider.Serve(serve) }()
	b.stops = append(b.stops, func() error { cancel(); return <-done })
	maps.Copy(b.env, map[string]string{
		"AUTH_ISSUER": issuer, "AUTH_AUDIENCE": audience, "AUTH_JWKS_URL": b.provider.URL() + "/.well-known/jwks.json",
		"STRIPE_BASE_URL": b.provider.URL(), "STRIPE_API_KEY": "sk_test_bench",
		"STRIPE_WEBHOOK_SECRET": "whsec_sandbox",
		"API_ADDR":              "127.0.0.1:0", "OPS_ADDR": "127.0.0.1:0",
	})
	for i := range b.tokens {
		b.tokens[i], err = b.provider.Token(actor(i), tenant, "orders:read orders:write", b.limit+time.Hour)
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
	}
	return nil
}

func actor(i int) string { return fmt.Sprintf("actor-%d", i%actors) }

// sku is the name of a product; names sort as their numbers do.
func sku(i int) string { return fmt.Sprintf("SKU-%d", 100_000+i) }

// seed adds the catalogue: stock that no run can exhaust, so that every order is accepted.
func (b *bench) seed(ctx context.Context) error {
	for _, statement := range []string{
		`INSERT INTO products (tenant_id, sku, name, price_amount, price_currency, active, created_at, updated_at, version)
		SELECT $1, 'SKU-' || 100000 + i, 'Product ' || i, 1999, 'EUR', true, now(), clock_timestamp(), 1
		FROM generate_series(0, $2 - 1) i`,
		`INSERT INTO stock (tenant_id, sku, on_hand, updated_at, version)
		SELECT $1, 'SKU-' || 100000 + i, 1000000000, now(), 1 FROM generate_series(0, $2 - 1) i`,
	} {
		if _, err := b.db.Exec(ctx, statement, tenant, b.skus); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	_, err := b.db.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

func (b *bench) startAPI(ctx context.Context) (err error) {
	b.api, err = b.startChild(ctx, "api", nil)
	return err
}

// startWorker starts the worker with its default settings, overridden by env.
func (b *bench) startWorker(ctx context.Context, env map[string]string) (err error) {
	b.worker, err = b.startChild(ctx, "worker", env)
	return err
}

func (b *bench) stopWorker() error {
	if b.worker == nil {
		return nil
	}
	w := b.worker
	b.worker = nil
	return w.stop()
}
