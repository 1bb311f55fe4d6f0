// Package testkit starts the service for tests: a database of the test's own, the sandbox, the API on a real socket
// and, when asked, the worker, all wired by the code that production runs. When a test has ended it checks the books.
package testkit

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/telemetry"
	"example.com/orders/migrations"
)

// EventsPath is where the API receives the events of the payment provider.
const EventsPath = "/v1/provider-events"

const (
	// Issuer and Audience are those of the tokens that Sandbox mints.
	Issuer   = "http://sandbox.test"
	Audience = "orders-api"
	// Wait bounds everything that a test waits for. It is not a timing: a test that runs into it has failed.
	Wait = pgtest.Wait
)

// Service is a running service and what a test needs to look into it.
type Service struct {
	URL         string            // of the API
	DatabaseURL string            // of the user that owns the database
	DB          *pgxpool.Pool     // for looking and for holding locks; not the service's own pool
	Sandbox     *sandbox.Sandbox  // the payment provider and the token mint
	Env         map[string]string // what the parts are configured with
	Spans       *tracetest.SpanRecorder
	Metrics     map[string]*telemetry.Telemetry // of the API and of the worker, by "api" and "worker"
	Log         *slog.Logger                    // of what is started from now on; nil: silence

	api    *boot.API
	worker *boot.Worker
}

// Start starts the API and the sandbox on a new database. env overrides settings, as environment variables would:
// pairs of name and value.
func Start(t testing.TB, env ...string) *Service {
	t.Helper()
	return StartOn(t, pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB)), env...)
}

// StartOn is Start on a database that is migrated already.
func StartOn(t testing.TB, databaseURL string, env ...string) *Service {
	t.Helper()
	s := &Service{
		DatabaseURL: databaseURL, Spans: tracetest.NewSpanRecorder(), Metrics: map[string]*telemetry.Telemetry{},
	}
	s.DB = pgtest.Open(t, databaseURL)
	t.Cleanup(func() { pgtest.Close(t, s.DB) }) // the one that it is by then
	s.startSandbox(t)
	maps.Copy(s.Env, pairs(env))
	s.periodicJobsRan(t)
	s.StartAPI(t)
	t.Cleanup(func() {
		s.StopAPI(t)
		s.StopWorker(t)
		CheckBooks(t, s)
	})
	return s
}

func (s *Service) startSandbox(t testing.TB) {
	t.Helper()
	server := Sandbox(t)
	s.Sandbox = server.Sandbox
	s.Env = map[string]string{
		"DATABASE_URL": s.DatabaseURL, "DB_MAX_CONNS": "8", "API_ADDR": "127.0.0.1:0", "OPS_ADDR": "127.0.0.1:0",
		"AUTH_ISSUER": Issuer, "AUTH_AUDIENCE": Audience, "AUTH_JWKS_URL": server.URL() + "/.well-known/jwks.json",
		"STRIPE_BASE_URL": server.URL(), "STRIPE_API_KEY": "sk_test_tests",
		"STRIPE_WEBHOOK_SECRET": sandbox.DefaultEventSecret,
		"PURGE_INTERVAL":        day.String(), "RECONCILE_INTERVAL": day.String(),
	}
}

// Sandbox starts a payment provider and token mint on a port of its own. Start has done so for a service already.
func Sandbox(t testing.TB) *sandbox.Server {
	t.Helper()
	server, err := sandbox.Listen(t.Context(), sandbox.Settings{
		Addr: "127.0.0.1:0", Config: sandbox.Config{Issuer: Issuer, Audience: Audience},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, Take(t, done)) })
	return server
}

// StartAPI starts the API; Start has done so already. The sandbox delivers its events there from now on.
func (s *Service) StartAPI(t testing.TB) {
	t.Helper()
	s.startAPI(t)
	s.Sandbox.SetEventsURL(s.URL + EventsPath)
}

func (s *Service) startAPI(t testing.TB) {
	t.Helper()
	c, err := config.LoadAPI(s.lookup)
	require.NoError(t, err)
	s.api, err = boot.StartAPI(context.WithoutCancel(t.Context()), c, s.telemetry(t, "api"), s.log())
	require.NoError(t, err)
	s.URL = s.api.URL()
}

// StopAPI stops the API in good order. It may be called twice.
func (s *Service) StopAPI(t testing.TB) {
	t.Helper()
	if s.api != nil {
		require.NoError(t, s.api.Stop(bounded(t)))
		s.api = nil
	}
}

// StartWorker starts the worker. It is stopped when the test ends, or by StopWorker.
func (s *Service) StartWorker(t testing.TB) {
	t.Helper()
	c, err := config.LoadWorker(s.lookup)
	require.NoError(t, err)
	s.worker, err = boot.StartWorker(context.WithoutCancel(t.Context()), c, s.telemetry(t, "worker"), s.log())
	require.NoError(t, err)
}

// StopWorker stops the worker in good order. It may be called twice.
func (s *Service) StopWorker(t testing.TB) {
	t.Helper()
	if s.worker != nil {
		require.NoError(t, s.worker.Stop(bounded(t)))
		s.worker = nil
	}
}

func (s *Service) telemetry(t testing.TB, part string) *telemetry.Telemetry {
	t.Helper()
	made, err := telemetry.Start(t.Context(), "orders-"+part, s.Spans)
	require.NoError(t, err)
	s.Metrics[part] = made
	return made
}

func (s *Service) lookup(name string) (string, bool) { v, ok := s.Env[name]; return v, ok }

func (s *Service) log() *slog.Logger { return cmp.Or(s.Log, Log()) }

// Log is silent unless a test is to be watched.
func Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

func bounded(t TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Wait)
	t.Cleanup(cancel)
	return ctx
}

func pairs(env []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(env); i += 2 {
		m[env[i]] = env[i+1]
	}
	return m
}

// Eventually waits, within Wait, until the condition holds. It polls: use it for what has no signal to wait on.
func Eventually(t TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, Wait, 10*time.Millisecond, what)
}
