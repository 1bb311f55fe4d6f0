package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/infra/config"
)

// changed is an environment with other values: pairs of name and value.
func changed(env map[string]string, pairs ...string) map[string]string {
	other := maps.Clone(env)
	for i := 0; i+1 < len(pairs); i += 2 {
		other[pairs[i]] = pairs[i+1]
	}
	return other
}

const settingsPassword = "hunter2hunter2"

// goodSettings is what the processes must be told; everything else has a default.
func goodSettings() map[string]string {
	return map[string]string{
		"DATABASE_URL": "postgres://orders:" + settingsPassword + "@db.example/orders", "AUTH_ISSUER": "https://id.example",
		"AUTH_AUDIENCE": "orders-api", "AUTH_JWKS_URL": "https://id.example/jwks", "STRIPE_API_KEY": "sk_test_x",
		"STRIPE_WEBHOOK_SECRET": "whsec_x",
	}
}

// badSettings is the values that each variable must refuse. (docs/settings has the bounds, and its test tries them.)
func badSettings() map[string][]string {
	durations := []string{"soon", "10", "-1s", "99999h", "1 s"}
	counts := []string{"many", "-1", "1.5", "0x10", "99999999999"}
	bad := map[string][]string{
		"DATABASE_URL": {
			"", "db.example", "mysql://u:" + settingsPassword + "@db.example/orders", "postgres://u:" + settingsPassword + "@db:port/orders",
		},
		"API_ADDR": {"8080", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"}, "OPS_ADDR": {"8081", ":-1"},
		"AUTH_ISSUER": {""}, "AUTH_AUDIENCE": {""}, "AUTH_JWKS_URL": {"", "id.example/jwks", "ftp://id.example/jwks"},
		"TRACE_TRUSTED_PEERS": {"10.0.0.1", "10.0.0.1/8", "gateway", "10.0.0.0/8;fd00::/8", "10.0.0.0/33"},
		"STRIPE_API_KEY":      {""}, "STRIPE_BASE_URL": {"api.stripe.com", "ftp://api.stripe.com"}, "DB_POOLER": {"session", "yes"},
		"STRIPE_WEBHOOK_SECRET": {""},
		"AUTH_TENANT_REQUIRED":  {"yes", "1", "TRUE"},
		// Each by itself in its bounds, and wrong beside the others' defaults.
		"IDEMPOTENCY_KEY_RETENTION": {"23h"}, "IDEMPOTENCY_KEY_WAIT": {"30s"}, "PROVIDER_TIMEOUT": {"30s"},
		"JOB_RESCUE_AFTER": {"30s"}, "DB_LOCK_TIMEOUT": {"16s"},
		"WORKER_POLL_INTERVAL": {"5ms"},
	}
	for _, name := range []string{
		"DB_CONNECT_TIMEOUT", "DB_ACQUIRE_TIMEOUT", "DB_LOCK_TIMEOUT", "DB_STATEMENT_TIMEOUT", "DB_IDLE_TX_TIMEOUT",
		"IDEMPOTENCY_KEY_WAIT", "REQUEST_TIMEOUT", "SHUTDOWN_TIMEOUT", "CALLER_RETRY_WINDOW", "IDEMPOTENCY_KEY_RETENTION",
		"JOB_TIMEOUT", "JOB_RESCUE_AFTER", "PROVIDER_TIMEOUT", "PROVIDER_LAG", "PURGE_INTERVAL", "PURGE_PAUSE",
		"RECONCILE_INTERVAL", "RECONCILE_AGE", "WORKER_FETCH_COOLDOWN", "WORKER_POLL_INTERVAL",
		"PAYMENT_REFUSAL_LIMIT", "UNMATCHED_CHARGE_DELAY", "PROVIDER_EVENT_TOLERANCE", "PROVIDER_EVENT_RETENTION",
	} {
		bad[name] = append(bad[name], durations...)
	}
	for _, name := range []string{
		"DB_MAX_CONNS", "WORKER_CONCURRENCY", "PURGE_BATCH_SIZE", "PURGE_BATCHES", "RECONCILE_BATCH_SIZE", "RECONCILE_PAGES",
	} {
		bad[name] = append(bad[name], counts...)
	}
	return bad
}

// load reads the settings of both processes and tells which variables they looked at.
func load(env map[string]string) (errs map[string]error, asked []string) {
	seen := map[string]bool{}
	lookup := func(name string) (string, bool) {
		seen[name] = true
		v, ok := env[name]
		return v, ok
	}
	_, api := config.LoadAPI(lookup)
	_, worker := config.LoadWorker(lookup)
	return map[string]error{"api": api, "worker": worker}, slices.Sorted(maps.Keys(seen))
}

// Ensure every variable refuses bad values with one line that begins with its name and shows no password.
func TestLifecycleSettingsNameTheVariable(t *testing.T) {
	t.Parallel()
	errs, asked := load(goodSettings())
	require.NoError(t, errs["api"])
	require.NoError(t, errs["worker"])
	bad := badSettings()
	asked = slices.DeleteFunc(asked, func(name string) bool { return name == "STRIPE_WEBHOOK_SECRET_NEXT" }) // takes any value
	require.Equal(t, asked, slices.Sorted(maps.Keys(bad)), "variables without bad values in this test")
	for variable, values := range bad {
		for _, value := range values {
			errs, _ := load(changed(goodSettings(), variable, value))
			refused := 0
			for _, err := range errs {
				if err == nil {
					continue // not this process's
				}
				refused++
				require.True(t, strings.HasPrefix(err.Error(), variable+" "), "%s=%q: %v", variable, value, err)
				require.NotContains(t, err.Error(), "\n")
				require.NotContains(t, err.Error(), settingsPassword)
			}
			require.Positive(t, refused, "%s=%q is accepted", variable, value)
		}
	}
}
