// Package lab is the page of make run on which a visitor runs the scenarios and sees, on a time line, what clients, API,
// PostgreSQL, outbox, worker and provider did. What it shows are the spans, the bytes and the rows of that very run.
package lab

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
)

//go:embed page
var page embed.FS

// Lab runs scenarios, one at a time, on a throw-away service of its own.
type Lab struct {
	runs     *runs
	root     *os.Root // of the checkout; nil: no source is shown
	listener net.Listener
	server   *http.Server
}

// Serve serves a Lab at an address of this machine, LAB_ADDR. options says how to start its service, which is started for the
// first run. root is the folder of the checkout, whose files it shows; empty: it shows none. beside answers what is not the
// lab's; nil: nothing does.
func Serve(ctx context.Context, addr string, options stack.ThrowawayOptions, root string, beside http.Handler) (*Lab, error) {
	if !loopback(addr) {
		return nil, fmt.Errorf("LAB_ADDR=%q: the lab is for this machine only", addr)
	}
	l := &Lab{runs: newRuns(options)}
	var err error
	if root != "" {
		if l.root, err = os.OpenRoot(root); err != nil {
			return nil, fmt.Errorf("folder of the source: %w", err)
		}
	}
	if l.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err != nil {
		return nil, fmt.Errorf("LAB_ADDR: %w", err)
	}
	l.server = &http.Server{Handler: l.handler(beside), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = l.server.Serve(l.listener) }()
	return l, nil
}

// URL is where the page is.
func (l *Lab) URL() string { return "http://" + l.listener.Addr().String() + "/lab/" }

// Stop ends the run that is under way and stops the lab and its service.
func (l *Lab) Stop(ctx context.Context) error {
	err := errors.Join(l.server.Shutdown(ctx), l.runs.close())
	if l.root != nil {
		err = errors.Join(err, l.root.Close())
	}
	return err
}

// handler serves the lab below /lab/ and what is beside it, to programs of this machine only.
func (l *Lab) handler(beside http.Handler) http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/lab/", http.StatusFound))
	mux.Handle("GET /lab/", http.StripPrefix("/lab/", http.FileServerFS(files)))
	mux.HandleFunc("GET /lab/scenarios", l.getScenarios)
	mux.HandleFunc("POST /lab/runs", l.postRun)
	mux.HandleFunc("GET /lab/runs/{id}", l.getRun)
	mux.HandleFunc("GET /lab/source/{path...}", l.getSource)
	if beside != nil {
		mux.Handle("/", beside)
	}
	return local(mux)
}

// local refuses a request that names another host than this machine, and lets its pages load nothing from elsewhere. A page
// of another site can neither read nor write: its requests carry its origin, and a name of its own that was made to point
// here (DNS rebinding) is refused.
func local(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !loopback(r.Host) {
			problem(w, http.StatusForbidden, "the lab is for this machine: use 127.0.0.1 or localhost")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback tells whether a host, with or without a port, names this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 1 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// maxBody bounds a request's body, in bytes.
const maxBody = 4 << 10

func (l *Lab) postRun(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Scenario string         `json:"scenario"`
		Knobs    map[string]int `json:"knobs"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		problem(w, http.StatusBadRequest, "the body is not the JSON that is expected: "+err.Error())
		return
	}
	s, ok := scenario.Find(asked.Scenario)
	if !ok {
		problem(w, http.StatusNotFound, "there is no scenario "+strconv.Quote(asked.Scenario))
		return
	}
	knobs, err := s.Set(asked.Knobs)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	id, err := l.runs.start(context.WithoutCancel(r.Context()), s, knobs)
	if err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	w.Header().Set("Location", "/lab/runs/"+id)
	reply(w, http.StatusCreated, map[string]string{"id": id})
}

func (l *Lab) getRun(w http.ResponseWriter, r *http.Request) {
	run := l.runs.get(r.PathValue("id"))
	if run == nil {
		problem(w, http.StatusNotFound, "there is no such run; the last "+strconv.Itoa(keptRuns)+" are kept")
		return
	}
	reply(w, http.StatusOK, run.view(r.Context()))
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // what fails here is the connection: the browser has gone
}

// problem answers with Problem Details (RFC 9457).
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}
