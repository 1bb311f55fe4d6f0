package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/lossy"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/telemetry"
)

// demo is the service that the tour is told on.
type demo struct {
	story *story
	parts *tail // what the parts log
	*stack
	api    *boot.API
	ops    *boot.Ops     // of this process: the API's
	proxy  *lossy.Proxy  // to the API, for losing answers
	db     *pgxpool.Pool // for holding rows and for counting; not the service's own
	worker *child
	quiet  *client.Client // reads everything, and is not shown
	killed openapi.OrderID
	told   []*step // the chapters so far
}

func newDemo(s *story) *demo {
	d := &demo{story: s, parts: &tail{}}
	d.stack = &stack{
		sealed: true, notes: os.Stderr, log: telemetry.NewLog(d.parts, "orders-demo"),
		env: map[string]string{
			"AUTH_ISSUER": "http://sandbox.demo", "AUTH_AUDIENCE": audience,
			"API_ADDR": "127.0.0.1:0", "OPS_ADDR": "127.0.0.1:0",
			// A job counts as crashed as soon as River can have another leader at all, which is 9 s after a kill.
			"PROVIDER_TIMEOUT": "5s", "JOB_TIMEOUT": "6s", "JOB_RESCUE_AFTER": "7s",
		},
	}
	return d
}

// start starts a throw-away PostgreSQL, the sandbox and the API in this process, and the worker as a process of its own.
func (d *demo) start(ctx context.Context) (err error) {
	d.story.printf("Starting PostgreSQL, the payment provider's stand-in, the API and the worker, all of them throw-away …\n")
	forgetEnvironment()
	if err := d.startTelemetry(ctx); err != nil {
		return err
	}
	if _, err = d.startSandbox(ctx, "127.0.0.1:0", ""); err != nil {
		return err
	}
	if err := d.startDatabase(ctx, ""); err != nil {
		return err
	}
	if d.api, err = d.startAPI(ctx); err != nil {
		return err
	}
	if d.ops, err = d.startOps(ctx, nil); err != nil {
		return err
	}
	if d.proxy, err = lossy.Start(d.api.URL()); err != nil {
		return err
	}
	d.stops = append(d.stops, func(context.Context) error { return d.proxy.Close() })
	url, _ := d.lookup("DATABASE_URL")
	if d.db, err = pgxpool.New(ctx, url); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	d.stops = append(d.stops, func(context.Context) error { d.db.Close(); return nil })
	d.quiet = d.client(d.api.URL(), "auditor", http.DefaultTransport)
	return d.startChild()
}

// forgetEnvironment drops the variables that libraries read by themselves: those of libpq (PGSERVICE and the like), which
// pgx mixes into every address, and those of OpenTelemetry. PG_BINDIR, which says where a PostgreSQL is installed, stays.
func forgetEnvironment() {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if libpq := strings.HasPrefix(name, "PG") && name != "PG_BINDIR"; libpq || strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name)
		}
	}
}

// staff has every scope, and may touch every order of the tenant.
const staff = localScopes + " orders:admin"

// client is a client of one actor. Customers have names with a small letter; sam works here, and the auditor reads.
func (d *demo) client(url, actor string, transport http.RoundTripper) *client.Client {
	scopes := localScopes
	if actor == "sam" || actor == "auditor" {
		scopes = staff
	}
	token := func(context.Context) (string, error) { return d.provider.Token(actor, "default", scopes, time.Hour) }
	c, err := client.New(url, token, client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		panic(err) // the URL is our own
	}
	return c
}

// held is a row that racing requests need.
type held struct {
	table string // with its condition
	arg   any
}

func orderRow(id openapi.OrderID) held   { return held{"orders WHERE id = $1", id} }
func paymentRow(id openapi.OrderID) held { return held{"payments WHERE order_id = $1", id} }
func stockRow(sku string) held           { return held{"stock WHERE sku = $1", sku} }

// hold locks a row until release.
func (d *demo) hold(ctx context.Context, row held) (release func() error, err error) {
	tx, err := d.db.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", row.table, err)
	}
	release = func() error { return tx.Rollback(context.WithoutCancel(ctx)) }
	if _, err := tx.Exec(ctx, "SELECT FROM "+row.table+" FOR UPDATE", row.arg); err != nil {
		_ = release()
		return nil, fmt.Errorf("hold %s: %w", row.table, err)
	}
	return release, nil
}

// waiters is how many statements of the API wait for a lock.
func (d *demo) waiters(ctx context.Context) (n int, err error) {
	err = d.db.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'orders-api' AND wait_event_type = 'Lock'`).Scan(&n)
	return n, err
}

// orders is how many orders there are.
func (d *demo) orders(ctx context.Context) (n int) {
	if err := d.db.QueryRow(ctx, `SELECT count(*) FROM orders`).Scan(&n); err != nil {
		return -1
	}
	return n
}

func (d *demo) onHand(ctx context.Context, sku string) int64 {
	k, err := d.quiet.GetStock(ctx, sku)
	if err != nil {
		return -1
	}
	return k.Value.OnHand
}

// paid waits until the charge of an order has ended in a state, and no refund of it is on its way.
func (d *demo) paid(ctx context.Context, id openapi.OrderID, status openapi.PaymentStatus) (openapi.Payment, error) {
	var p openapi.Payment
	err := until(ctx, "payment "+string(status)+" of order "+id.String(), func() (bool, error) {
		answer, err := d.quiet.GetPayment(ctx, id)
		if err != nil {
			return false, err
		}
		p = answer.Value
		return p.Status == status && !refunding(p), nil
	})
	return p, err
}

func refunding(p openapi.Payment) bool {
	for _, r := range p.Refunds {
		if r.Status == openapi.RefundStatusPending {
			return true
		}
	}
	return false
}

// account is what the provider's ledger says of one order.
type account struct {
	charges, declined, refunds int
	charged, refunded          int64
}

func (d *demo) account(id openapi.OrderID) account { return accounts(d.provider.Ledger())[id.String()] }

func accounts(l sandbox.Ledger) map[string]account {
	all := map[string]account{}
	for _, c := range l.Charges {
		a := all[c.OrderID]
		if c.Status == "succeeded" {
			a.charges++
			a.charged += c.Amount
		} else {
			a.declined++
		}
		all[c.OrderID] = a
	}
	for _, r := range l.Refunds {
		if r.Status == "succeeded" {
			a := all[r.OrderID]
			a.refunds++
			a.refunded += r.Amount
			all[r.OrderID] = a
		}
	}
	return all
}

// showLedger prints what the provider has on an order.
func (d *demo) showLedger(id openapi.OrderID) {
	ledger, shown := d.provider.Ledger(), false
	for _, c := range ledger.Charges {
		if c.OrderID == id.String() {
			d.story.line("ledger", "charge %s %s %s", c.ID, euros(c.Amount), c.Status)
			shown = true
		}
	}
	for _, r := range ledger.Refunds {
		if r.OrderID == id.String() {
			d.story.line("ledger", "refund %s %s %s", r.ID, euros(r.Amount), r.Status)
		}
	}
	if !shown {
		d.story.line("ledger", "nothing")
	}
}
