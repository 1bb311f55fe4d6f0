package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
	"example.com/orders/migrations"
)

const (
	dataDir  = ".data"
	audience = "orders-api"
	// stopWait bounds how long each part may take to stop.
	stopWait = 15 * time.Second
)

// stack is the parts that run beside the worker. Each start function adds what it started; stop undoes them in
// reverse.
type stack struct {
	env      map[string]string // what the parts are configured with
	sealed   bool              // env is everything; else the real environment comes before it
	log      *slog.Logger
	notes    io.Writer
	tel      *telemetry.Telemetry // one for all parts of this process
	provider *sandbox.Server      // delivers its events to the API
	ready    []func(context.Context) error
	stops    []func(context.Context) error
}

func (s *stack) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	var err error
	for _, stop := range slices.Backward(s.stops) {
		err = errors.Join(err, stop(ctx))
	}
	return err
}

// lookup finds a variable in the environment, unless the stack is sealed, and else what it has set for its parts.
func (s *stack) lookup(name string) (string, bool) {
	if v, ok := os.LookupEnv(name); ok && v != "" && !s.sealed {
		return v, true
	}
	v, ok := s.env[name]
	return v, ok
}

// startDatabase uses DATABASE_URL, or starts an embedded PostgreSQL in dir (empty: a throw-away one). It migrates and
// seeds the database.
func (s *stack) startDatabase(ctx context.Context, dir string) error {
	owner, ok := s.lookup("MIGRATE_DATABASE_URL")
	if _, given := s.lookup("DATABASE_URL"); !given {
		var err error
		if owner, err = s.startPostgreSQL(ctx, dir); err != nil {
			return fmt.Errorf("embedded PostgreSQL: %w", err)
		}
	} else if !ok {
		owner, _ = s.lookup("DATABASE_URL")
	}
	pool, err := pgxpool.New(ctx, owner)
	if err != nil {
		return errors.New("DATABASE_URL or MIGRATE_DATABASE_URL cannot be parsed")
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	return s.seed(ctx)
}

// startPostgreSQL starts the server and lets the service in as a role that owns nothing. It returns the owner's address.
func (s *stack) startPostgreSQL(ctx context.Context, dir string) (owner string, err error) {
	server, err := postgres.Start(ctx, postgres.Options{DataDir: dir, Durable: dir != "", Log: s.notes})
	if err != nil {
		return "", err
	}
	s.stops = append(s.stops, func(context.Context) error { return server.Stop() })
	owner, s.env["DATABASE_URL"], err = server.Separate(ctx, "orders")
	return owner, err
}

func (s *stack) startSandbox(ctx context.Context, addr, stateFile string) (*sandbox.Server, error) {
	// The issuer's name stays the same when the sandbox moves to another port, so that old tokens stay valid.
	issuer, _ := s.lookup("AUTH_ISSUER")
	if stateFile != "" {
		if err := os.MkdirAll(filepath.Dir(stateFile), 0o755); err != nil {
			return nil, fmt.Errorf("folder of the sandbox: %w", err)
		}
	}
	server, err := sandbox.Listen(ctx, sandbox.Settings{Addr: addr, Config: sandbox.Config{
		Issuer: issuer, Audience: audience, StateFile: stateFile, Log: s.log,
	}})
	if err != nil {
		return nil, err
	}
	serve, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- server.Serve(serve) }()
	s.stops = append(s.stops, func(context.Context) error { cancel(); return <-done })
	s.env["AUTH_JWKS_URL"] = server.URL() + "/.well-known/jwks.json"
	s.env["STRIPE_BASE_URL"] = server.URL()
	s.env["STRIPE_API_KEY"] = "sk_test_sandbox"
	s.env["STRIPE_WEBHOOK_SECRET"] = sandbox.DefaultEventSecret
	s.provider = server
	return server, nil
}

func (s *stack) startTelemetry(ctx context.Context) (err error) {
	s.tel, err = telemetry.Start(ctx, "orders-dev")
	if err == nil {
		s.stops = append(s.stops, s.tel.Stop)
	}
	return err
}

func (s *stack) startAPI(ctx context.Context) (*boot.API, error) {
	c, err := config.LoadAPI(s.lookup)
	if err != nil {
		return nil, err
	}
	api, err := boot.StartAPI(ctx, c, s.tel, s.log)
	if err != nil {
		return nil, err
	}
	s.provider.SetEventsURL(api.URL() + "/v1/provider-events")
	s.stops = append(s.stops, api.Stop)
	s.ready = append(s.ready, api.Ready)
	return api, nil
}

func (s *stack) startWorker(ctx context.Context) (*boot.Worker, error) {
	c, err := config.LoadWorker(s.lookup)
	if err != nil {
		return nil, err
	}
	worker, err := boot.StartWorker(ctx, c, s.tel, s.log)
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, worker.Stop)
	s.ready = append(s.ready, worker.Ready)
	return worker, nil
}

// startOps starts the operators' listener, with the worker's jobs where there is one in this process.
func (s *stack) startOps(ctx context.Context, worker *boot.Worker) (*boot.Ops, error) {
	c, err := config.LoadAPI(s.lookup)
	if err != nil {
		return nil, err
	}
	ops, err := boot.StartOps(c.OpsAddr, s.tel, s.log, s.ready...)
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, ops.Stop)
	if worker == nil {
		return ops, nil
	}
	return ops, ops.ShowJobs(ctx, worker)
}

func dataPath(name string) string {
	path, err := filepath.Abs(filepath.Join(dataDir, name))
	if err != nil {
		return filepath.Join(dataDir, name)
	}
	return path
}
