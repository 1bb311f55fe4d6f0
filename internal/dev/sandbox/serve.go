package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// stopWait bounds how long a stopping server waits for the requests it is answering. It is longer than the six seconds
// for which net/http waits for the first request of a new connection: clients dial ahead.
const stopWait = 20 * time.Second

// Settings is how a process runs a Sandbox: Config, and the address to listen on.
type Settings struct {
	Addr string
	Config
}

// SettingsFromEnv reads SANDBOX_ADDR, AUTH_ISSUER, AUTH_AUDIENCE, SANDBOX_STATE, SANDBOX_EVENTS_URL and
// SANDBOX_EVENTS_SECRET (one secret, or several with commas between). An error names its variable.
func SettingsFromEnv(getenv func(string) string) (Settings, error) {
	set := Settings{Addr: cmp.Or(getenv("SANDBOX_ADDR"), "127.0.0.1:8089"), Config: Config{
		Issuer:    cmp.Or(getenv("AUTH_ISSUER"), "http://127.0.0.1:8089"),
		Audience:  cmp.Or(getenv("AUTH_AUDIENCE"), "orders-api"),
		StateFile: getenv("SANDBOX_STATE"), EventsURL: getenv("SANDBOX_EVENTS_URL"),
		EventSecrets: strings.FieldsFunc(getenv("SANDBOX_EVENTS_SECRET"), func(r rune) bool { return r == ',' }),
	}}
	if _, _, err := net.SplitHostPort(set.Addr); err != nil {
		return Settings{}, fmt.Errorf("sandbox: SANDBOX_ADDR=%q is not host:port", set.Addr)
	}
	for name, value := range map[string]string{"AUTH_ISSUER": set.Issuer, "SANDBOX_EVENTS_URL": set.EventsURL} {
		if u, err := url.Parse(value); value != "" && (err != nil || u.Scheme == "" || u.Host == "") {
			return Settings{}, fmt.Errorf("sandbox: %s=%q is not an absolute URL", name, value)
		}
	}
	return set, nil
}

// Server is a Sandbox that listens on an address.
type Server struct {
	*Sandbox
	listener net.Listener
}

// Listen makes the Sandbox and takes its address, so that its caller knows at once when it cannot be had. An
// error names the environment variable of the setting at fault.
func Listen(ctx context.Context, set Settings) (*Server, error) {
	s, err := New(set.Config)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", set.Addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: SANDBOX_ADDR: %w", errors.Join(err, s.Close()))
	}
	return &Server{Sandbox: s, listener: listener}, nil
}

// URL is the address that the server answers at.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Serve answers until ctx ends, then lets held requests go on, stops and closes the Sandbox.
func (s *Server) Serve(ctx context.Context) error {
	return errors.Join(s.serve(ctx), s.Close())
}

func (s *Server) serve(ctx context.Context) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(s.ClearFaults)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("sandbox: serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return fmt.Errorf("sandbox: stop: %w", errors.Join(err, server.Close()))
	}
	return nil
}
