package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/child"
	"example.com/orders/internal/dev/postgres"
	"example.com/orders/internal/dev/testkit"
)

// bouncerSettings makes sessions rare, so that the transactions of one client really run in different ones.
const bouncerSettings = `
[databases]
%s = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
`

// startPgBouncer starts a PgBouncer in transaction mode before a database and returns its address. It skips the test
// where there is no PgBouncer.
func startPgBouncer(t testing.TB, databaseURL string) string {
	t.Helper()
	program := pgBouncer(t)
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	password, _ := u.User.Password()
	port, err := postgres.FreePort()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf(bouncerSettings, strings.TrimPrefix(u.Path, "/"), u.Hostname(), u.Port(), u.User.Username(), password, port)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644)) // for the user that it runs as

	args := []string{file}
	if os.Geteuid() == 0 { // it refuses to run as root
		args = []string{"-u", "nobody", file}
	}
	bouncer, err := child.Start(child.Command{Argv: append([]string{program}, args...)})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = bouncer.Stop(os.Kill, testkit.Wait)
		if t.Failed() {
			t.Log(bouncer.Output())
		}
	})
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	testkit.Eventually(t, "PgBouncer", func() bool {
		conn, err := net.DialTimeout("tcp", u.Host, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return u.String()
}

func pgBouncer(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} { // Debian's is not on every PATH
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no PgBouncer on this machine (Debian: apt-get install pgbouncer)")
	return ""
}
