// Package boot wires the processes together, so that cmd/api, cmd/worker, cmd/dev and the tests all run the same code.
// It uses no dependency injection container: each function builds what it needs, in order, and Stop releases it.
package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"

	"example.com/orders/internal/app"
	"example.com/orders/internal/httpapi"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/outbox"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/infra/stripegateway"
	"example.com/orders/internal/infra/telemetry"
)

// API is a running API process.
type API struct {
	server         *http.Server
	listener       net.Listener
	pool           *pgxpool.Pool
	ready          *readiness
	stopBackground context.CancelFunc // stops the fetching of keys and the waker
	failed         chan error
}

// StartAPI starts the API and returns once it listens.
func StartAPI(ctx context.Context, c config.API, t *telemetry.Telemetry, log *slog.Logger) (*API, error) {
	pool, err := postgres.Open(ctx, c.Database, "orders-api", t.Statements())
	if err != nil {
		return nil, err
	}
	ready, err := openReadiness(ctx, c.Database, "orders-api", pool, false)
	if err != nil {
		pool.Close()
		return nil, err
	}
	a := &API{pool: pool, ready: ready, failed: make(chan error, 1)}
	if err := a.start(ctx, c, t, log); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *API) start(ctx context.Context, c config.API, t *telemetry.Telemetry, log *slog.Logger) error {
	store := postgres.NewStore(a.pool, outbox.In, postgres.NewSettings(c.Database, c.KeyWait), t.Metrics, t.Traces)
	background, stop := context.WithCancel(context.WithoutCancel(ctx)) // for as long as requests are served
	a.stopBackground = stop
	if !c.Database.Pooled { // behind a pooler no worker listens
		waker := outbox.NewWaker(a.pool, telemetry.Quiet(log, slog.LevelWarn, time.Minute))
		store.AfterEnqueue(waker.Wake)
		go waker.Run(background)
	}
	service := app.New(store, postgres.NewReader(store), nil, app.Settings{
		KeyRetention: c.KeyRetention, EventRetention: c.EventRetention,
	}, telemetry.Findings{Metrics: t.Metrics, Log: log})
	auth, err := httpapi.NewJWTAuthenticator(background, httpapi.JWTConfig{
		Issuer: c.AuthIssuer, Audience: c.AuthAudience, JWKSURL: c.AuthJWKSURL, TenantRequired: c.TenantRequired,
	}, t.Metrics, log)
	if err != nil {
		return fmt.Errorf("AUTH_JWKS_URL: %w", err)
	}
	events := stripegateway.NewEventParser(c.EventTolerance, c.EventSecrets...)
	handler, err := httpapi.New(service, auth, events, t.Metrics, log)
	if err != nil {
		return err
	}
	if err := postgres.PoolGauges(t.Metrics, a.pool, a.ready.pool); err != nil {
		return err
	}
	if a.listener, err = net.Listen("tcp", c.Addr); err != nil {
		return fmt.Errorf("API_ADDR: %w", err)
	}
	a.server = newServer(otelhttp.NewHandler(handler, "api", otelhttp.WithTracerProvider(t.Traces),
		// Its metrics would have one series per Host header that a client sends; our own metrics have the same figures.
		otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(t.Propagator()),
		otelhttp.WithPublicEndpointFn(func(r *http.Request) bool { return !trusted(c.TracePeers, r.RemoteAddr) })),
		c.RequestTimeout, c.Database.LockTimeout+postgres.CommitTimeout)
	go func() { a.failed <- a.server.Serve(a.listener) }()
	return nil
}

// trusted reports whether a peer's trace context becomes the parent of our spans. An untrusted trace context becomes
// only a link, so that a caller can neither choose our trace ids nor decide which requests are sampled.
func trusted(networks []netip.Prefix, peer string) bool {
	address, err := netip.ParseAddrPort(peer)
	return err == nil && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address.Addr().Unmap()) })
}

// newServer sets timeouts for headers, body and response, so that a slow client cannot hold a connection. A COMMIT that
// has begun when the limit is reached has the time of commit.
func newServer(handler http.Handler, limit, commit time.Duration) *http.Server {
	return &http.Server{
		Handler:           withDeadline(handler, limit),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		// After the deadline there is still time for a COMMIT that has begun, and for the answer.
		WriteTimeout:   limit + commit + 5*time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
	}
}

// withDeadline cancels a request's context after limit; an unfinished request is answered with try_again.
func withDeadline(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// URL is the base URL of the API.
func (a *API) URL() string { return "http://" + a.listener.Addr().String() }

// Ready returns nil if the API can serve, or the reason why it cannot.
func (a *API) Ready(ctx context.Context) error { return a.ready.database(ctx) }

// Failed receives the error of a server that stopped without being asked to.
func (a *API) Failed() <-chan error { return a.failed }

// Stop stops accepting and lets requests in flight finish for three quarters of the time that ctx leaves. Requests that
// need longer are cut off, so their transactions roll back. The pool is closed last.
func (a *API) Stop(ctx context.Context) error {
	graceful, cancel := mostOf(ctx)
	defer cancel()
	err := a.server.Shutdown(graceful)
	if err != nil {
		err = fmt.Errorf("requests were cut off: %w", err)
		_ = a.server.Close()
	}
	a.stopBackground()
	return errors.Join(err, closePools(ctx, a.ready.pool, a.pool))
}

// mostOf returns a context with three quarters of ctx's remaining time.
func mostOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*3/4)
}

// closePools waits until every connection is returned and closed, or until ctx ends.
func closePools(ctx context.Context, pools ...*pgxpool.Pool) error {
	closed := make(chan struct{})
	go func() {
		for _, pool := range pools {
			pool.Close()
		}
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return errors.New("connections to the database were still in use")
	}
}

// close releases the resources of a failed start, when no request is in flight.
func (a *API) close() {
	if a.stopBackground != nil {
		a.stopBackground()
	}
	a.ready.pool.Close()
	a.pool.Close()
}
