package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/orders/internal/dev/docspage"
	"example.com/orders/internal/dev/lab"
	"example.com/orders/internal/dev/stack"
	"example.com/orders/internal/infra/config"
)

const (
	// dataDir keeps the database and the provider's state between runs.
	dataDir = ".data"
	// localScopes is what the printed token may do: everything but see other people's orders.
	localScopes = "orders:read orders:write orders:fulfil orders:refund catalog:read catalog:write"
)

// runService runs everything until ctx ends.
func runService(ctx context.Context, log *slog.Logger) (err error) {
	env := map[string]string{
		"AUTH_ISSUER": "http://127.0.0.1:8089", "AUTH_AUDIENCE": stack.Audience, "SANDBOX_ADDR": "127.0.0.1:8089",
		"LAB_ADDR": "127.0.0.1:8082",
	}
	s := &stack.Stack{Env: env, Log: log, Notes: os.Stderr}
	defer func() { err = errors.Join(err, s.Stop()) }()
	database, err := filepath.Abs(filepath.Join(dataDir, "postgres"))
	if err != nil {
		return fmt.Errorf("folder of the data: %w", err)
	}
	state := filepath.Join(dataDir, "sandbox.json")
	ephemeral, err := config.Switch(s.Lookup, "EPHEMERAL")
	if err != nil {
		return err
	}
	if ephemeral {
		database, state = "", ""
	}
	if err := s.StartAll(ctx, database, state); err != nil {
		return err
	}
	address, err := startLab(ctx, s)
	if err != nil {
		return err
	}
	if err := welcome(s, address); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Println("\nstopping …")
		return nil
	case err := <-s.API.Failed():
		return err
	}
}

// startLab serves the lab and returns its address. Where this program was started in a checkout, as make run does, the lab
// shows its source.
func startLab(ctx context.Context, s *stack.Stack) (address string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("folder of the source: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "api", "openapi.yaml")); err != nil {
		root = ""
	}
	addr, _ := s.Lookup("LAB_ADDR")
	docs, err := reference(s)
	if err != nil {
		return "", err
	}
	l, err := lab.Serve(ctx, addr, stack.ThrowawayOptions{Notes: os.Stderr}, root, docs)
	if err != nil {
		return "", err
	}
	s.OnStop(l.Stop)
	return l.URL(), nil
}

// reference is the reference of the API, whose requests carry the token that make run prints.
func reference(s *stack.Stack) (http.Handler, error) {
	api, err := url.Parse(s.API.URL())
	if err != nil {
		return nil, fmt.Errorf("address of the API: %w", err)
	}
	return docspage.Handler(api, func(context.Context) (string, error) { return token(s) }), nil
}

// token lets its bearer act as alice for a day.
func token(s *stack.Stack) (string, error) {
	minted, err := s.Provider.Token("alice", "default", localScopes, 24*time.Hour)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return minted, nil
}

func welcome(s *stack.Stack, lab string) error {
	minted, err := token(s)
	if err != nil {
		return err
	}
	fmt.Printf(`
The order service runs.

  API       %[1]s      its contract, to read and to try: %[6]s
  lab       %[5]s run a scenario, and see what every part did
  ops       %[4]s      /livez, /readyz, /metrics, /debug/pprof/, and the jobs at /riverui/jobs?state=completed
  sandbox   %[2]s      the payment provider's stand-in: GET /ledger, PUT /faults, POST /token

Place an order. Send it twice: it is placed once.

TOKEN=%[3]s
curl -isS %[1]s/v1/orders \
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -H "Idempotency-Key: my-first-order" \
  -d '{"currency":"EUR","lines":[{"sku":"TEA-001","quantity":2}],
       "shipping_address":{"name":"Alice Ames","line1":"1 High Street","city":"Berlin","postal_code":"10115","country":"DE"},
       "payment_method":"pm_card_visa"}'

Then look at what was charged:  curl -sS %[2]s/ledger
Ctrl-C stops everything.
`, s.API.URL(), s.Provider.URL(), minted, s.Ops.URL(), lab, strings.TrimSuffix(lab, "lab/")+"docs/")
	return nil
}
