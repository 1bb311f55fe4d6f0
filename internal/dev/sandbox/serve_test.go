package sandbox_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/orders/internal/dev/sandbox"
)

func settings(t *testing.T, env map[string]string) sandbox.Settings {
	t.Helper()
	set, err := sandbox.SettingsFromEnv(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Ensure the settings have their documented defaults, and that a bad one is named.
func TestSettings(t *testing.T) {
	t.Parallel()
	set := settings(t, nil)
	equal(t, "addr", set.Addr, "127.0.0.1:8089")
	equal(t, "issuer", set.Issuer, "http://127.0.0.1:8089")
	equal(t, "audience", set.Audience, "orders-api")
	both := settings(t, map[string]string{"SANDBOX_EVENTS_URL": "http://api/events", "SANDBOX_EVENTS_SECRET": "whsec_1,whsec_2"})
	equal(t, "events", both.EventsURL, "http://api/events")
	equal(t, "secrets", strings.Join(both.EventSecrets, " "), "whsec_1 whsec_2")
	for name, value := range map[string]string{"SANDBOX_ADDR": "8089", "AUTH_ISSUER": "nowhere", "SANDBOX_EVENTS_URL": "/path"} {
		_, err := sandbox.SettingsFromEnv(func(n string) string { return map[string]string{name: value}[n] })
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v", name, value, err)
		}
	}
}

// Ensure a stopping server lets held requests go, charged and answered.
func TestServeStops(t *testing.T) {
	t.Parallel()
	server, err := sandbox.Listen(t.Context(), settings(t, map[string]string{"SANDBOX_ADDR": "127.0.0.1:0"}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped, answered := make(chan error, 1), make(chan error, 1)
	go func() { stopped <- server.Serve(ctx) }()
	if err := server.SetFaults([]sandbox.FaultRule{{Operation: "charge", Kind: "hold"}}); err != nil {
		t.Fatal(err)
	}
	client := stripeClient(server.URL(), &http.Client{})
	go func() {
		_, err := client.V1PaymentIntents.Create(t.Context(), chargeParams("o1", "pm_card_visa"))
		answered <- err
	}()
	b := &bench{t: t}
	if err := server.WaitHeld(b.within(), 1); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-answered; err != nil {
		t.Errorf("held request: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Ensure a connection on which no request was sent, as clients that dial ahead leave behind, does not fail a stop.
func TestServeStopsDespiteAnUnusedConnection(t *testing.T) {
	t.Parallel()
	server, err := sandbox.Listen(t.Context(), settings(t, map[string]string{"SANDBOX_ADDR": "127.0.0.1:0"}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(ctx) }()
	unused, err := net.DialTimeout("tcp", strings.TrimPrefix(server.URL(), "http://"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Close()
	client := http.Client{Timeout: time.Minute}
	if response, err := client.Get(server.URL() + "/.well-known/jwks.json"); err != nil { // by now both are accepted
		t.Fatal(err)
	} else {
		response.Body.Close()
	}
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Ensure a taken port is an error that names the variable.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SANDBOX_ADDR": "127.0.0.1:0"}
	first, err := sandbox.Listen(t.Context(), settings(t, env))
	if err != nil {
		t.Fatal(err)
	}
	env["SANDBOX_ADDR"] = strings.TrimPrefix(first.URL(), "http://")
	_, err = sandbox.Listen(t.Context(), settings(t, env))
	if err == nil || !strings.Contains(err.Error(), "SANDBOX_ADDR") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Serve(ctx); err != nil {
		t.Error(err)
	}
}
