package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"riverqueue.com/riverui"

	"example.com/orders/internal/infra/telemetry"
)

// readyTimeout bounds one request to /readyz.
const readyTimeout = 2 * time.Second

// riverUIPrefix is the path of River's user interface.
const riverUIPrefix = "/riverui"

// Ops is the listener for operators: health, metrics, profiles and the job queue. It must not be public, because it has
// no authentication. Its default address is the loopback interface.
type Ops struct {
	server   *http.Server
	listener net.Listener
	mux      *http.ServeMux
	log      *slog.Logger
	stopping atomic.Bool
}

// StartOps starts the listener. /readyz answers 200 while every check returns nil and no stop has been asked for.
func StartOps(addr string, t *telemetry.Telemetry, log *slog.Logger, checks ...func(context.Context) error) (*Ops, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("OPS_ADDR: %w", err)
	}
	o := &Ops{listener: listener, mux: http.NewServeMux(), log: log}
	o.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	o.mux.HandleFunc("GET /readyz", o.ready(checks))
	o.mux.Handle("GET /metrics", t.Handler())
	o.mux.HandleFunc("/debug/pprof/", pprof.Index)
	o.mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	o.mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	o.mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	o.server = &http.Server{Handler: o.mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = o.server.Serve(listener) }()
	return o, nil
}

func (o *Ops) ready(checks []func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		var err error
		if o.stopping.Load() {
			err = errors.New("stopping")
		}
		for _, check := range checks {
			err = errors.Join(err, check(ctx))
		}
		if err != nil {
			o.log.WarnContext(ctx, "not ready", "error", err)
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// ShowJobs adds River's user interface at /riverui.
func (o *Ops) ShowJobs(ctx context.Context, w *Worker) error {
	ui, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(w.River(), nil), Logger: o.log, Prefix: riverUIPrefix,
	})
	if err != nil {
		return fmt.Errorf("river ui: %w", err)
	}
	if err := ui.Start(ctx); err != nil {
		return fmt.Errorf("river ui: %w", err)
	}
	o.mux.Handle(riverUIPrefix+"/", ui)
	return nil
}

// URL is the base URL of the listener.
func (o *Ops) URL() string { return "http://" + o.listener.Addr().String() }

// Stopping makes /readyz answer 503, so that load balancers send no new requests while running ones finish.
func (o *Ops) Stopping() { o.stopping.Store(true) }

// Stop closes the listener.
func (o *Ops) Stop(ctx context.Context) error { return o.server.Shutdown(ctx) }
