package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// variables are all that a process reads, each of which is fuzzed beside good values of the others. What holds a secret is
// never shown.
var (
	variables = strings.Fields(`API_ADDR OPS_ADDR AUTH_ISSUER AUTH_AUDIENCE AUTH_JWKS_URL AUTH_TENANT_REQUIRED TRACE_TRUSTED_PEERS
		IDEMPOTENCY_KEY_WAIT IDEMPOTENCY_KEY_RETENTION CALLER_RETRY_WINDOW PROVIDER_EVENT_TOLERANCE PROVIDER_EVENT_RETENTION REQUEST_TIMEOUT
		SHUTDOWN_TIMEOUT WORKER_CONCURRENCY WORKER_FETCH_COOLDOWN WORKER_POLL_INTERVAL JOB_TIMEOUT JOB_RESCUE_AFTER STRIPE_BASE_URL PROVIDER_TIMEOUT
		PROVIDER_LAG PAYMENT_REFUSAL_LIMIT PURGE_INTERVAL PURGE_BATCH_SIZE PURGE_BATCHES PURGE_PAUSE RECONCILE_INTERVAL RECONCILE_AGE
		RECONCILE_BATCH_SIZE RECONCILE_PAGES UNMATCHED_CHARGE_DELAY DB_POOLER DB_MAX_CONNS DB_CONNECT_TIMEOUT DB_ACQUIRE_TIMEOUT DB_LOCK_TIMEOUT
		DB_STATEMENT_TIMEOUT DB_IDLE_TX_TIMEOUT MIGRATE_TIMEOUT`)
	secrets = strings.Fields(`DATABASE_URL MIGRATE_DATABASE_URL STRIPE_API_KEY STRIPE_WEBHOOK_SECRET STRIPE_WEBHOOK_SECRET_NEXT`)
	enough  = map[string]string{
		"DATABASE_URL": "postgres://u@h/d", "AUTH_ISSUER": "i", "AUTH_AUDIENCE": "a", "AUTH_JWKS_URL": "https://h/jwks", "STRIPE_API_KEY": "k", "STRIPE_WEBHOOK_SECRET": "s",
	}
)

// FuzzEnvironment: a value of any text is taken within its bounds, or refused in one line that names its variable and shows
// no secret.
func FuzzEnvironment(f *testing.F) {
	for i := range len(variables) + len(secrets) {
		for _, seed := range []string{"", "0", "1", "-1", "10s", "1h", "true", "none", "127.0.0.1:0", ":99999", "https://h", "postgres://u:p@h/d", "10.0.0.0/8, fd00::/8", "1e9h", "\n", "é\x00"} {
			f.Add(byte(i), seed)
		}
	}
	loads := []func(Lookup) error{
		func(l Lookup) error { _, err := LoadAPI(l); return err },
		func(l Lookup) error { _, err := LoadWorker(l); return err },
		func(l Lookup) error { _, err := LoadMigrate(l); return err },
	}
	f.Fuzz(func(t *testing.T, which byte, value string) {
		all := slices.Concat(variables, secrets)
		i := int(which) % len(all)
		env := maps.Clone(enough)
		env[all[i]] = value
		lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		api, apiErr := LoadAPI(lookup)
		worker, workerErr := LoadWorker(lookup)
		migrate, migrateErr := LoadMigrate(lookup)
		errs := []error{apiErr, workerErr, migrateErr}
		for _, err := range errs {
			if err == nil {
				continue
			}
			require.NotContains(t, err.Error(), "\n")
			require.Contains(t, err.Error(), strings.TrimPrefix(all[i], "MIGRATE_"))
		}
		if i >= len(variables) && value != "" {
			env[all[i]] = "\x00" // is refused wherever value is
			for j, load := range loads {
				require.Condition(t, func() bool { return errs[j] == nil || errs[j].Error() == load(lookup).Error() }, "an error shows a secret")
			}
		}
		if apiErr == nil {
			require.True(t, api.KeyWait < api.RequestTimeout && api.RequestTimeout <= 5*time.Minute)
			require.True(t, api.KeyRetention >= time.Minute && api.Database.MaxConns > 0 && api.Database.LockTimeout <= api.Database.StatementTimeout)
		}
		if workerErr == nil {
			require.True(t, worker.ProviderTimeout < worker.JobTimeout && worker.JobTimeout < worker.JobRescueAfter && worker.Concurrency > 0)
			require.True(t, worker.PurgeBatch > 0 && worker.ReconcilePages > 0 && worker.PurgePause >= 0)
		}
		if migrateErr == nil {
			require.True(t, migrate.Timeout >= time.Second && migrate.Database.LockTimeout > 0)
		}
	})
}
