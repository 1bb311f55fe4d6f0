package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/migrations"
)

// The parts of the service that run as processes: what each is called here, and its program.
var programs = []struct{ name, command string }{
	{"api-1", "api"}, {"api-2", "api"}, {"worker-1", "worker"}, {"worker-2", "worker"},
}

// skus are the products of the run, and their units at the start: few, so that orders share them, and one soon short.
var skus = map[string]int64{"CUP-001": 400, "JAR-001": 400, "TEA-001": 400, "RARE-001": 20}

// limits are the service's settings of the run. They are short, so that a pause can outlast every one of them. The
// reconciliation never enqueues what has lost its job: a lost job is to be seen, not repaired.
var limits = map[string]string{
	"DB_MAX_CONNS": "8", "DB_ACQUIRE_TIMEOUT": "1s", "DB_LOCK_TIMEOUT": "1s", "DB_STATEMENT_TIMEOUT": "2s",
	"DB_IDLE_TX_TIMEOUT": "2s", "IDEMPOTENCY_KEY_WAIT": "1s", "REQUEST_TIMEOUT": "4s",
	"PROVIDER_TIMEOUT": "1s", "PROVIDER_LAG": "1s", "JOB_TIMEOUT": "3s", "JOB_RESCUE_AFTER": "4s",
	"RECONCILE_INTERVAL": "1s", "RECONCILE_AGE": "24h", "UNMATCHED_CHARGE_DELAY": "0s",
}

// pauseLength is longer than every timeout of the service but that of a COMMIT.
const pauseLength = 5 * time.Second

// world is everything that runs, and the ways between.
type world struct {
	*testkit.Service
	t        testing.TB
	began    time.Time
	server   *postgres.Server
	apis     []string // where clients reach each API
	links    map[string]*testkit.Proxy
	wires    []*testkit.Proxy // before the database of each process
	parts    []*part
	skewed   map[string]string // programs whose clock is ahead; nil: none are used
	migrator *migrator
	seen     map[string]int64 // see witness

	mu      sync.Mutex
	broken  []string // what the run itself has seen against the rules
	history []*operation
	orders  []*placed
}

// part is one process and what brings it back.
type part struct {
	name, command string
	env           map[string]string
	skewed        bool // its clock is ahead
	running       *testkit.Running
	logs          []*testkit.Running // of all its lives
}

func startWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, links: map[string]*testkit.Proxy{}, seen: map[string]int64{}}
	if time.Duration(*seconds)*time.Second >= skewFrom {
		w.skewed = buildSkewed(t)
	}
	w.startDatabase()
	provider := testkit.Sandbox(t)
	w.Sandbox = provider.Sandbox
	for sku, units := range skus {
		w.Product(t, sku, 500, units)
	}
	base := map[string]string{
		"OPS_ADDR": "127.0.0.1:0", "AUTH_ISSUER": testkit.Issuer, "AUTH_AUDIENCE": testkit.Audience,
		"AUTH_JWKS_URL": provider.URL() + "/.well-known/jwks.json", "STRIPE_API_KEY": "sk_test_chaos",
		"STRIPE_WEBHOOK_SECRET": sandbox.DefaultEventSecret,
	}
	maps.Copy(base, limits)
	for _, p := range programs {
		w.addPart(p.name, p.command, base, provider.URL())
	}
	w.links["events"] = testkit.StartProxy(t, "http://"+w.parts[0].env["API_ADDR"])
	w.Sandbox.SetEventsURL(w.links["events"].URL + testkit.EventsPath)
	for _, p := range w.parts {
		w.launch(p)
		p.running.AwaitReady()
	}
	w.began = time.Now()
	return w
}

// startDatabase starts a PostgreSQL that keeps what it has committed, whatever happens.
func (w *world) startDatabase() {
	w.t.Helper()
	ctx := w.t.Context()
	var err error
	w.server, err = postgres.Start(ctx, postgres.Options{Durable: true})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.server.Stop()) })
	owner, service, err := w.server.Separate(ctx, "orders")
	require.NoError(w.t, err)
	w.migrator = newMigrator(w.t, owner)
	pool := pgtest.Open(w.t, owner)
	require.NoError(w.t, migrations.Up(ctx, pool))
	pgtest.Close(w.t, pool)
	db := pgtest.Open(w.t, w.server.URL("orders"))
	w.t.Cleanup(func() { pgtest.Close(w.t, db) })
	w.Service = &testkit.Service{DB: db, DatabaseURL: service}
}

// addPart lays the ways of a process: to the database through a link and a proxy that can lose a COMMIT, to the provider,
// and from the clients.
func (w *world) addPart(name, command string, base map[string]string, provider string) {
	w.t.Helper()
	p := &part{name: name, command: command, env: maps.Clone(base)}
	w.links[name+" to database"] = testkit.StartProxy(w.t, w.DatabaseURL)
	wire := testkit.StartProxy(w.t, w.links[name+" to database"].URL)
	w.wires = append(w.wires, wire)
	p.env["DATABASE_URL"] = wire.URL
	if command == "api" {
		p.env["API_ADDR"] = freeAddress(w.t)
		w.links["clients to "+name] = testkit.StartProxy(w.t, "http://"+p.env["API_ADDR"])
		w.apis = append(w.apis, w.links["clients to "+name].URL)
	} else {
		w.links[name+" to provider"] = testkit.StartProxy(w.t, provider)
		p.env["STRIPE_BASE_URL"] = w.links[name+" to provider"].URL
	}
	w.parts = append(w.parts, p)
}

// freeAddress is one that a process can take again in each of its lives.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := postgres.FreePort()
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func (w *world) launch(p *part) {
	if p.skewed {
		p.running = testkit.LaunchBinary(w.t, w.skewed[p.command], p.env)
	} else {
		p.running = testkit.Launch(w.t, p.command, p.env)
	}
	p.logs = append(p.logs, p.running)
}

// revive starts a process that has ended, as its supervisor would.
func (w *world) revive(p *part) {
	if p.running.Ended() {
		w.launch(p)
	}
}

func (w *world) signal(p *part, s syscall.Signal) {
	if err := syscall.Kill(p.running.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		require.NoError(w.t, err)
	}
}

// now is the time of the run's clock.
func (w *world) now() int64 { return int64(time.Since(w.began)) }

// violation notes what was seen against the rules. Any goroutine may call it.
func (w *world) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf("%.3f s: ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// until waits, for at most limit, until done.
func until(limit time.Duration, done func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < limit; <-tick.C {
		if done() {
			return true
		}
	}
	return false
}

// count asks the database, which may be down: -1.
func (w *world) count(from string) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if w.DB.QueryRow(ctx, `SELECT count(*) FROM `+from).Scan(&n) != nil {
		return -1
	}
	return n
}

// keepLogs writes what the processes have said beside the history.
func (w *world) keepLogs(dir string) error {
	var failed error
	for _, p := range w.parts {
		for life, r := range p.logs {
			name := fmt.Sprintf("%s/%s.%d.log", dir, p.name, life+1)
			failed = errors.Join(failed, os.WriteFile(name, []byte(r.Output()), 0o600))
		}
	}
	return failed
}
