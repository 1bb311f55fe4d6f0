package stack

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/sdk/trace"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/telemetry"
)

// ThrowawayOptions says how to start a throw-away service. The zero value will do.
type ThrowawayOptions struct {
	Log         io.Writer        // of all parts; nil: none
	Notes       io.Writer        // of the embedded PostgreSQL; nil: none
	DatabaseURL string           // an empty database to use; empty: an embedded PostgreSQL
	Worker      []string         // the program and the arguments that call RunWorker; nil: this program with "worker"
	Spans       func(spans.Span) // is told of every span of every part; nil: none is made
	// Tap makes what stands on the way of requests from caller to callee (worker to provider, provider to API) and hands them
	// on to target; nil: nothing does.
	Tap func(caller, callee, target string) http.Handler
}

// throwaway is the whole service for scenarios: a database, a provider and the API in this process, and the worker as a
// process of its own. No address, no database and no setting of the user's is touched.
type throwaway struct {
	*Stack

	options ThrowawayOptions
	worker  *worker
}

// Throwaway starts a throw-away service. stop ends it, also when it was started in part.
func Throwaway(ctx context.Context, o ThrowawayOptions) (service *scenario.Service, stop func() error, err error) {
	o.Log, o.Notes = cmp.Or(o.Log, io.Discard), cmp.Or(o.Notes, io.Discard)
	t := &throwaway{options: o, Stack: &Stack{
		Sealed: true, Notes: o.Notes, Log: telemetry.NewLog(o.Log, "orders-dev"),
		Env: map[string]string{
			"AUTH_ISSUER": "http://sandbox.test", "AUTH_AUDIENCE": Audience,
			"API_ADDR": "127.0.0.1:0", "OPS_ADDR": "127.0.0.1:0", "TRACE_TRUSTED_PEERS": "127.0.0.0/8",
			// A job counts as crashed as soon as River can have another leader at all, which is 9 s after a kill.
			"PROVIDER_TIMEOUT": "5s", "JOB_TIMEOUT": "6s", "JOB_RESCUE_AFTER": "7s",
		},
	}}
	if o.DatabaseURL != "" {
		t.Env["DATABASE_URL"] = o.DatabaseURL
	}
	service, err = t.start(ctx)
	return service, t.Stop, err
}

func (t *throwaway) start(ctx context.Context) (*scenario.Service, error) {
	var processors []trace.SpanProcessor
	if t.options.Spans != nil {
		processors = append(processors, spans.Processor(t.options.Spans))
	}
	if err := t.StartTelemetry(ctx, processors...); err != nil {
		return nil, err
	}
	if err := t.StartSandbox(ctx, "127.0.0.1:0", ""); err != nil {
		return nil, err
	}
	t.Env["STRIPE_BASE_URL"] = t.tap("worker", "provider", t.Env["STRIPE_BASE_URL"])
	if err := t.StartDatabase(ctx, ""); err != nil {
		return nil, err
	}
	if err := t.StartAPI(ctx); err != nil {
		return nil, err
	}
	events := t.tap("provider", "api", t.API.URL()) + testkit.EventsPath
	t.Provider.SetEventsURL(events)
	if err := t.StartOps(ctx, nil); err != nil {
		return nil, err
	}
	proxy, err := testkit.NewProxy(t.API.URL())
	if err != nil {
		return nil, err
	}
	t.OnStop(func(context.Context) error { proxy.Close(); return nil })
	db, err := pgxpool.New(ctx, t.Env["DATABASE_URL"])
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	t.OnStop(func(context.Context) error { db.Close(); return nil })
	return &scenario.Service{
		Service: &testkit.Service{
			URL: t.API.URL(), DatabaseURL: t.Env["DATABASE_URL"], DB: db, Sandbox: t.Provider.Sandbox, Env: maps.Clone(t.Env),
		},
		Proxy: proxy, Ops: t.Ops.URL(), EventsURL: events, Traces: t.Tel.Traces, Worker: t,
	}, t.Start()
}

// tap is where a caller finds a callee from now on.
func (t *throwaway) tap(caller, callee, target string) string {
	if t.options.Tap == nil {
		return target
	}
	server := httptest.NewServer(t.options.Tap(caller, callee, target))
	t.OnStop(func(context.Context) error { server.Close(); return nil })
	return server.URL
}

// Start implements scenario.Worker.
func (t *throwaway) Start() error {
	argv := t.options.Worker
	if argv == nil {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		argv = []string{self, "worker"}
	}
	w, err := startWorker(argv, t.Env, t.options.Log, t.options.Spans)
	if err != nil {
		return err
	}
	t.worker = w
	t.OnStop(w.stop)
	return nil
}

// Kill implements scenario.Worker.
func (t *throwaway) Kill() error { return t.worker.kill() }

// PID implements scenario.Worker.
func (t *throwaway) PID() int { return t.worker.PID() }

// OpsURL implements scenario.Worker.
func (t *throwaway) OpsURL(ctx context.Context) (string, error) {
	addresses, err := t.worker.AwaitReady(ctx)
	return addresses.Ops, err
}
