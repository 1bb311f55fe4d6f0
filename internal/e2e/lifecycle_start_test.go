package e2e

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// lateDatabase is the address of a database that hangs up on the first callers, as one that is still starting does.
func lateDatabase(t *testing.T, address string, hangUps int64) (late string, calls *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	calls = &atomic.Int64{}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if calls.Add(1) <= hangUps {
				client.Close()
				continue
			}
			go forward(client, server)
		}
	}()
	u.Host = listener.Addr().String()
	return u.String(), calls
}

func forward(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.DialTimeout("tcp", server, testkit.Wait)
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() { _, _ = io.Copy(upstream, client) }()
	_, _ = io.Copy(client, upstream)
}

// Ensure a start waits for a database that is not there yet.
func TestLifecycleStartWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	late, calls := lateDatabase(t, s.DatabaseURL, 4)
	s.Env["DATABASE_URL"] = late
	s.startProcess()
	require.Greater(t, calls.Load(), int64(4))
	s.place("pm_card_visa")
}

// oneLine checks that a process has said what is wrong in one line, which names the variable and shows no password.
func oneLine(t *testing.T, output, variable, password string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(output, "\n"), output)
	require.True(t, strings.HasPrefix(output, variable), output)
	require.NotContains(t, output, password)
}

// Ensure a start fails with one line that names the variable when no server listens, when the database does not exist, or
// when the server does not answer.
func TestLifecycleStartGivesUpOnTheDatabase(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	secret := password(t, s.DatabaseURL)
	gone := testkit.StartProxy(t, s.DatabaseURL)
	gone.Cut()
	silent := testkit.StartProxy(t, s.DatabaseURL)
	silent.Silence()
	missing, err := url.Parse(s.DatabaseURL)
	require.NoError(t, err)
	missing.Path = "/no_such_database"
	for name, address := range map[string]string{"gone": gone.URL, "silent": silent.URL, "missing": missing.String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"api", "worker"} {
				env := changed(s.Env, "DATABASE_URL", address, "DB_CONNECT_TIMEOUT", "1s")
				oneLine(t, testkit.Refused(t, command, env), "DATABASE_URL", secret)
			}
		})
	}
}

// Ensure an address that is taken is one line that names its variable.
func TestLifecycleStartRefusesATakenAddress(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for command, variable := range map[string]string{"api": "API_ADDR", "worker": "OPS_ADDR"} {
		output := testkit.Refused(t, command, changed(s.Env, variable, taken.Addr().String()))
		oneLine(t, output, variable, password(t, s.DatabaseURL))
	}
}

// Ensure the processes themselves refuse a bad setting with the one line.
func TestLifecycleStartRefusesABadSetting(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	for _, c := range []struct{ command, variable, value string }{
		{"api", "IDEMPOTENCY_KEY_RETENTION", "1h"}, // shorter than the time in which callers retry
		{"worker", "JOB_TIMEOUT", "soon"},
		{"api", "OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"}, // no scheme: the exporter would take its default
		{"worker", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector"},
		{"worker", "OTEL_RESOURCE_ATTRIBUTES", "a=b,c"},
	} {
		output := testkit.Refused(t, c.command, changed(s.Env, c.variable, c.value))
		oneLine(t, output, c.variable, password(t, s.DatabaseURL))
	}
}

// Ensure a worker whose schema is not there yet waits for it, and gives up with one line that says what to do.
func TestLifecycleWorkerWaitsForItsSchema(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.exec(`CREATE TABLE test_kept AS SELECT * FROM goose_db_version ORDER BY id DESC LIMIT 1`)
	s.exec(`DELETE FROM goose_db_version WHERE id IN (SELECT id FROM test_kept)`)
	output := testkit.Refused(t, "worker", changed(s.Env, "DB_CONNECT_TIMEOUT", "1s"))
	oneLine(t, output, "DATABASE_URL", password(t, s.DatabaseURL))
	require.Contains(t, output, "migrate up")

	migrated := make(chan struct{})
	go func() {
		defer close(migrated)
		testkit.Eventually(t, "a worker that looks", func() bool {
			return s.Count(t, `pg_stat_activity WHERE datname = current_database() AND application_name = 'orders-worker-readyz'`) > 0
		})
		s.exec(`INSERT INTO goose_db_version SELECT * FROM test_kept`)
	}()
	worker := testkit.Process(t, "worker", s.Env)
	testkit.Take(t, migrated)
	s.placePaid("pm_card_visa")
	worker.Stop()
}
