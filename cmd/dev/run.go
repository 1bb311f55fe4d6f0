package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/config"
)

// localScopes is what the printed token may do: everything but see other people's orders.
const localScopes = "orders:read orders:write orders:fulfil orders:refund catalog:read catalog:write"

// runService runs everything until ctx ends.
func runService(ctx context.Context, log *slog.Logger) (err error) {
	s := &stack{env: map[string]string{"AUTH_ISSUER": "http://127.0.0.1:8089", "AUTH_AUDIENCE": audience}, log: log, notes: os.Stderr}
	defer func() { err = errors.Join(err, s.stop()) }()
	database, state := dataPath("postgres"), dataPath("sandbox.json")
	ephemeral, err := config.Switch(s.lookup, "EPHEMERAL")
	if err != nil {
		return err
	}
	if ephemeral {
		database, state = "", ""
	}
	if err := s.startTelemetry(ctx); err != nil {
		return err
	}
	addr, ok := s.lookup("SANDBOX_ADDR")
	if !ok {
		addr = "127.0.0.1:8089"
	}
	provider, err := s.startSandbox(ctx, addr, state)
	if err != nil {
		return err
	}
	if err := s.startDatabase(ctx, database); err != nil {
		return err
	}
	api, err := s.startAPI(ctx)
	if err != nil {
		return err
	}
	worker, err := s.startWorker(ctx)
	if err != nil {
		return err
	}
	ops, err := s.startOps(ctx, worker)
	if err != nil {
		return err
	}
	address, err := s.startLab(ctx)
	if err != nil {
		return err
	}
	if err := welcome(api, ops, provider, address); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Println("\nstopping …")
		return nil
	case err := <-api.Failed():
		return err
	}
}

func welcome(api *boot.API, ops *boot.Ops, provider *sandbox.Server, lab string) error {
	token, err := provider.Token("alice", "default", localScopes, 24*time.Hour)
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	fmt.Printf(`
The order service runs.

  API       %[1]s      the contract is api/openapi.yaml
  ops       %[4]s      /livez, /readyz, /metrics, /debug/pprof/, and the jobs at /riverui/jobs?state=completed
  lab:      %[5]s      run a scenario and watch what every part does
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
`, api.URL(), provider.URL(), token, ops.URL(), lab)
	return nil
}
