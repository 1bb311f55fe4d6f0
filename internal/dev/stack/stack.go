// Package stack starts the whole service on this machine, with a database and a payment provider of its own: for make run,
// the tour, the lab, and their tests.
package stack

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
	"go.opentelemetry.io/otel/sdk/trace"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
	"example.com/orders/migrations"
)

const (
	// Audience is that of the tokens that the stack's issuer mints.
	Audience = "orders-api"
	// stopWait bounds how long each part may take to stop.
	stopWait = 15 * time.Second
)

// Stack is the parts of the service that run in this process. Each Start method starts one more; Stop stops them in
// reverse.
type Stack struct {
	Env      map[string]string // what the parts are configured with
	Sealed   bool              // Env is everything; else the real environment comes before it
	Log      *slog.Logger
	Notes    io.Writer            // notices of the embedded PostgreSQL, a line each
	Tel      *telemetry.Telemetry // one for all parts of this process
	Provider *sandbox.Server      // delivers its events to the API
	API      *boot.API
	Ops      *boot.Ops

	ready []func(context.Context) error
	stops []func(context.Context) error
}

// Stop stops every part that was started.
func (s *Stack) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	var err error
	for _, stop := range slices.Backward(s.stops) {
		err = errors.Join(err, stop(ctx))
	}
	return err
}

// OnStop adds something to be stopped before all that was started earlier.
func (s *Stack) OnStop(stop func(context.Context) error) { s.stops = append(s.stops, stop) }

// StartAll starts every part in this process, the worker too. The database and the provider keep their data at these paths;
// empty: nowhere.
func (s *Stack) StartAll(ctx context.Context, database, state string) error {
	if err := s.StartTelemetry(ctx); err != nil {
		return err
	}
	addr, _ := s.Lookup("SANDBOX_ADDR")
	if err := s.StartSandbox(ctx, addr, state); err != nil {
		return err
	}
	if err := s.StartDatabase(ctx, database); err != nil {
		return err
	}
	if err := s.StartAPI(ctx); err != nil {
		return err
	}
	worker, err := s.StartWorker(ctx)
	if err != nil {
		return err
	}
	return s.StartOps(ctx, worker)
}

// Lookup finds a variable in the environment, unless the stack is sealed, and else what it has set for its parts.
func (s *Stack) Lookup(name string) (string, bool) {
	if v, ok := os.LookupEnv(name); ok && v != "" && !s.Sealed {
		return v, true
	}
	v, ok := s.Env[name]
	return v, ok
}

// StartDatabase uses DATABASE_URL, or starts an embedded PostgreSQL in dir (empty: a throw-away one). It migrates and
// seeds the database.
func (s *Stack) StartDatabase(ctx context.Context, dir string) error {
	owner, ok := s.Lookup("MIGRATE_DATABASE_URL")
	if _, given := s.Lookup("DATABASE_URL"); !given {
		var err error
		if owner, err = s.startPostgreSQL(ctx, dir); err != nil {
			return fmt.Errorf("embedded PostgreSQL: %w", err)
		}
	} else if !ok {
		owner, _ = s.Lookup("DATABASE_URL")
	}
	pool, err := pgxpool.New(ctx, owner)
	if err != nil {
		return errors.New("DATABASE_URL or MIGRATE_DATABASE_URL cannot be parsed")
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	return s.Seed(ctx)
}

// startPostgreSQL starts the server and lets the service in as a role that owns nothing. It returns the owner's address.
func (s *Stack) startPostgreSQL(ctx context.Context, dir string) (owner string, err error) {
	server, err := postgres.Start(ctx, postgres.Options{DataDir: dir, Durable: dir != "", Log: s.Notes})
	if err != nil {
		return "", err
	}
	s.OnStop(func(context.Context) error { return server.Stop() })
	owner, s.Env["DATABASE_URL"], err = server.Separate(ctx, "orders")
	return owner, err
}

// StartSandbox starts the payment provider and the issuer of tokens at addr. stateFile keeps their state; empty: nothing does.
func (s *Stack) StartSandbox(ctx context.Context, addr, stateFile string) error {
	// The issuer's name stays the same when the sandbox moves to another port, so that old tokens stay valid.
	issuer, _ := s.Lookup("AUTH_ISSUER")
	if stateFile != "" {
		if err := os.MkdirAll(filepath.Dir(stateFile), 0o755); err != nil {
			return fmt.Errorf("folder of the sandbox: %w", err)
		}
	}
	server, err := sandbox.Listen(ctx, sandbox.Settings{Addr: addr, Config: sandbox.Config{
		Issuer: issuer, Audience: Audience, StateFile: stateFile, Log: s.Log,
	}})
	if err != nil {
		return err
	}
	serve, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- server.Serve(serve) }()
	s.OnStop(func(context.Context) error { cancel(); return <-done })
	s.Env["AUTH_JWKS_URL"] = server.URL() + "/.well-known/jwks.json"
	s.Env["STRIPE_BASE_URL"] = server.URL()
	s.Env["STRIPE_API_KEY"] = "sk_test_sandbox"
	s.Env["STRIPE_WEBHOOK_SECRET"] = sandbox.DefaultEventSecret
	s.Provider = server
	return nil
}

// StartTelemetry makes the telemetry of all parts of this process. Processors are told of every span.
func (s *Stack) StartTelemetry(ctx context.Context, processors ...trace.SpanProcessor) (err error) {
	s.Tel, err = telemetry.Start(ctx, "orders-dev", processors...)
	if err == nil {
		s.OnStop(s.Tel.Stop)
	}
	return err
}

// StartAPI starts the API. The provider delivers its events there from now on.
func (s *Stack) StartAPI(ctx context.Context) error {
	c, err := config.LoadAPI(s.Lookup)
	if err != nil {
		return err
	}
	api, err := boot.StartAPI(ctx, c, s.Tel, s.Log)
	if err != nil {
		return err
	}
	s.API = api
	s.Provider.SetEventsURL(api.URL() + "/v1/provider-events")
	s.OnStop(api.Stop)
	s.ready = append(s.ready, api.Ready)
	return nil
}

// StartWorker starts the worker in this process.
func (s *Stack) StartWorker(ctx context.Context) (*boot.Worker, error) {
	c, err := config.LoadWorker(s.Lookup)
	if err != nil {
		return nil, err
	}
	worker, err := boot.StartWorker(ctx, c, s.Tel, s.Log)
	if err != nil {
		return nil, err
	}
	s.OnStop(worker.Stop)
	s.ready = append(s.ready, worker.Ready)
	return worker, nil
}

// StartOps starts the operators' listener, with the worker's jobs where there is one in this process.
func (s *Stack) StartOps(ctx context.Context, worker *boot.Worker) error {
	c, err := config.LoadAPI(s.Lookup)
	if err != nil {
		return err
	}
	ops, err := boot.StartOps(c.OpsAddr, s.Tel, s.Log, s.ready...)
	if err != nil {
		return err
	}
	s.OnStop(ops.Stop)
	s.Ops = ops
	if worker == nil {
		return nil
	}
	return ops.ShowJobs(ctx, worker)
}
