package config

import (
	"net/netip"
	"time"
)

// Database configures the connection to PostgreSQL and its timeouts.
type Database struct {
	Variable         string // the name of the variable that URL comes from, for messages
	URL              string
	Pooled           bool // a pooler in transaction mode is between this process and PostgreSQL
	MaxConns         int
	ConnectTimeout   time.Duration // how long a start waits for the database
	AcquireTimeout   time.Duration // how long a request waits for a connection of the pool
	LockTimeout      time.Duration // how long a statement waits for a row
	StatementTimeout time.Duration
	IdleTxTimeout    time.Duration // how long a transaction may sit between two statements
}

// API configures cmd/api.
type API struct {
	Database        Database
	Addr            string
	OpsAddr         string
	AuthIssuer      string
	AuthAudience    string
	AuthJWKSURL     string
	TenantRequired  bool           // a token without tenant is refused
	TracePeers      []netip.Prefix // the networks whose trace context is trusted
	KeyRetention    time.Duration
	KeyWait         time.Duration
	EventSecrets    []string // of the provider's webhook endpoint: one, or two while the secret is rotated
	EventTolerance  time.Duration
	EventRetention  time.Duration
	RequestTimeout  time.Duration
	ShutdownTimeout time.Duration
}

// Worker configures cmd/worker.
type Worker struct {
	Database        Database
	OpsAddr         string
	Concurrency     int
	FetchCooldown   time.Duration
	PollInterval    time.Duration
	JobTimeout      time.Duration
	JobRescueAfter  time.Duration
	StripeKey       string
	StripeURL       string // empty: Stripe's own
	ProviderTimeout time.Duration
	ProviderLag     time.Duration
	RefusalLimit    time.Duration
	ShutdownTimeout time.Duration

	PurgeInterval     time.Duration
	PurgeBatch        int
	PurgeBatches      int
	PurgePause        time.Duration
	ReconcileInterval time.Duration
	ReconcileAge      time.Duration
	ReconcileBatch    int
	ReconcilePages    int
	UnmatchedDelay    time.Duration
}

// LoadAPI reads and checks the configuration of cmd/api.
func LoadAPI(lookup Lookup) (API, error) {
	r := &reader{lookup: lookup}
	c := API{
		Database:        database(r),
		Addr:            r.address("API_ADDR", "127.0.0.1:8080"),
		OpsAddr:         r.address("OPS_ADDR", "127.0.0.1:8081"),
		AuthIssuer:      r.required("AUTH_ISSUER"),
		AuthAudience:    r.required("AUTH_AUDIENCE"),
		AuthJWKSURL:     r.webURL("AUTH_JWKS_URL", false),
		TenantRequired:  r.choice("AUTH_TENANT_REQUIRED", "false", "true") == "true",
		TracePeers:      r.networks("TRACE_TRUSTED_PEERS"),
		KeyWait:         r.duration("IDEMPOTENCY_KEY_WAIT", 10*time.Second, 0, time.Minute),
		EventSecrets:    r.secrets("STRIPE_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET_NEXT"),
		EventTolerance:  r.duration("PROVIDER_EVENT_TOLERANCE", 5*time.Minute, time.Second, time.Hour),
		EventRetention:  r.duration("PROVIDER_EVENT_RETENTION", 96*time.Hour, time.Hour, 90*24*time.Hour),
		RequestTimeout:  r.duration("REQUEST_TIMEOUT", 30*time.Second, time.Second, 5*time.Minute),
		ShutdownTimeout: r.duration("SHUTDOWN_TIMEOUT", 20*time.Second, time.Second, 10*time.Minute),
	}
	// Retention must be longer than the time in which callers retry. A shorter one would turn a late retry into a
	// second order.
	window := r.duration("CALLER_RETRY_WINDOW", 24*time.Hour, time.Minute, 30*24*time.Hour)
	c.KeyRetention = r.duration("IDEMPOTENCY_KEY_RETENTION", 72*time.Hour, time.Minute, 90*24*time.Hour)
	r.relate(c.KeyRetention >= window, "IDEMPOTENCY_KEY_RETENTION",
		"must be at least CALLER_RETRY_WINDOW (%s); it is %s", window, c.KeyRetention)
	r.relate(c.KeyWait < c.RequestTimeout, "IDEMPOTENCY_KEY_WAIT",
		"must be shorter than REQUEST_TIMEOUT (%s); it is %s", c.RequestTimeout, c.KeyWait)
	return c, r.err()
}

// LoadWorker reads and checks the configuration of cmd/worker.
func LoadWorker(lookup Lookup) (Worker, error) {
	r := &reader{lookup: lookup}
	c := Worker{
		Database:        database(r),
		OpsAddr:         r.address("OPS_ADDR", "127.0.0.1:8081"),
		Concurrency:     r.count("WORKER_CONCURRENCY", 40, 1, 1000),
		FetchCooldown:   r.duration("WORKER_FETCH_COOLDOWN", 10*time.Millisecond, time.Millisecond, time.Second),
		PollInterval:    r.duration("WORKER_POLL_INTERVAL", 100*time.Millisecond, time.Millisecond, time.Minute),
		JobTimeout:      r.duration("JOB_TIMEOUT", 30*time.Second, time.Second, 10*time.Minute),
		JobRescueAfter:  r.duration("JOB_RESCUE_AFTER", time.Minute, 2*time.Second, time.Hour),
		StripeKey:       r.required("STRIPE_API_KEY"),
		StripeURL:       r.webURL("STRIPE_BASE_URL", true),
		ProviderTimeout: r.duration("PROVIDER_TIMEOUT", 20*time.Second, 100*time.Millisecond, 5*time.Minute),
		ProviderLag:     r.duration("PROVIDER_LAG", time.Minute, 0, time.Hour),
		RefusalLimit:    r.duration("PAYMENT_REFUSAL_LIMIT", 24*time.Hour, time.Second, 30*24*time.Hour),
		ShutdownTimeout: r.duration("SHUTDOWN_TIMEOUT", 20*time.Second, time.Second, 10*time.Minute),

		PurgeInterval:     r.duration("PURGE_INTERVAL", 10*time.Minute, time.Second, 24*time.Hour),
		PurgeBatch:        r.count("PURGE_BATCH_SIZE", 1000, 1, 10_000),
		PurgeBatches:      r.count("PURGE_BATCHES", 100, 1, 10_000),
		PurgePause:        r.duration("PURGE_PAUSE", 50*time.Millisecond, 0, time.Minute),
		ReconcileInterval: r.duration("RECONCILE_INTERVAL", 5*time.Minute, time.Second, 24*time.Hour),
		ReconcileAge:      r.duration("RECONCILE_AGE", 10*time.Minute, 0, 24*time.Hour),
		ReconcileBatch:    r.count("RECONCILE_BATCH_SIZE", 100, 1, 10_000),
		ReconcilePages:    r.count("RECONCILE_PAGES", 10, 1, 1000),
		UnmatchedDelay:    r.duration("UNMATCHED_CHARGE_DELAY", 24*time.Hour, 0, 365*24*time.Hour),
	}
	r.relate(c.ProviderTimeout < c.JobTimeout, "PROVIDER_TIMEOUT",
		"must be shorter than JOB_TIMEOUT (%s); it is %s", c.JobTimeout, c.ProviderTimeout)
	r.relate(c.PollInterval >= c.FetchCooldown, "WORKER_POLL_INTERVAL",
		"must be at least WORKER_FETCH_COOLDOWN (%s); it is %s", c.FetchCooldown, c.PollInterval)
	r.relate(c.JobRescueAfter > c.JobTimeout, "JOB_RESCUE_AFTER",
		"must be longer than JOB_TIMEOUT (%s); it is %s", c.JobTimeout, c.JobRescueAfter)
	return c, r.err()
}

func database(r *reader) Database {
	c := Database{
		Variable:         "DATABASE_URL",
		URL:              r.postgresURL("DATABASE_URL"),
		Pooled:           r.choice("DB_POOLER", "none", "transaction") == "transaction",
		MaxConns:         r.count("DB_MAX_CONNS", 20, 1, 1000),
		ConnectTimeout:   r.duration("DB_CONNECT_TIMEOUT", 30*time.Second, time.Second, 10*time.Minute),
		AcquireTimeout:   r.duration("DB_ACQUIRE_TIMEOUT", 5*time.Second, 10*time.Millisecond, time.Minute),
		LockTimeout:      r.duration("DB_LOCK_TIMEOUT", 5*time.Second, 10*time.Millisecond, time.Minute),
		StatementTimeout: r.duration("DB_STATEMENT_TIMEOUT", 15*time.Second, 10*time.Millisecond, 10*time.Minute),
		IdleTxTimeout:    r.duration("DB_IDLE_TX_TIMEOUT", 30*time.Second, time.Second, 10*time.Minute),
	}
	r.relate(c.LockTimeout <= c.StatementTimeout, "DB_LOCK_TIMEOUT",
		"must not be longer than DB_STATEMENT_TIMEOUT (%s); it is %s", c.StatementTimeout, c.LockTimeout)
	return c
}
