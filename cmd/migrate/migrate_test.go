package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
	"github.com/stretchr/testify/require"
)

const (
	// migrating selects the sessions of the command that have asked for the migrations' lock.
	migrating = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'orders-migrate' AND query LIKE '%pg_try_advisory_lock%'`
	// inside selects those that wait for another session in the middle of a migration.
	inside = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'orders-migrate' AND wait_event_type = 'Lock'`
	applied = `SELECT count(*) FROM goose_db_version WHERE version_id > 0`
	twice   = `SELECT count(*) FROM (SELECT FROM goose_db_version GROUP BY version_id HAVING count(*) > 1) t`
)

// holdLock holds the lock of the migrations until release.
func holdLock(t testing.TB, conn *pgx.Conn) (release func()) {
	t.Helper()
	execute(t, conn, `SELECT pg_advisory_lock($1)`, lock.DefaultLockID)
	return func() { execute(t, conn, `SELECT pg_advisory_unlock($1)`, lock.DefaultLockID) }
}

// inTheWay begins a transaction that makes the second migration wait for its end.
func inTheWay(t testing.TB, conn *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `CREATE TABLE orders ()`)
	require.NoError(t, err)
	return tx
}

// Ensure three replicas that migrate an empty database at once all succeed, and that each migration ran once.
func TestThreeReplicasMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	conn := session(t, url)
	release := holdLock(t, conn)
	var replicas []*command
	for range 3 {
		replicas = append(replicas, start(t, "up", "DATABASE_URL="+url))
	}
	eventually(t, "three replicas at the lock", func() bool { return number(t, conn, migrating) == 3 })
	release()
	for _, r := range replicas {
		require.NoError(t, r.end(), r.out.String())
	}
	require.Zero(t, number(t, conn, twice))
	status := start(t, "status", "DATABASE_URL="+url)
	require.NoError(t, status.end(), status.out.String())
	require.Equal(t, number(t, conn, applied), strings.Count(status.out.String(), "\n"))
}

// Ensure the wait for another process that migrates is bounded, and that looking at the status does not wait at all,
// nor make anything.
func TestTheWaitForAnotherReplicaIsBounded(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	conn := session(t, url)
	holdLock(t, conn)

	status := start(t, "status", "DATABASE_URL="+url)
	require.Error(t, status.end())
	require.Contains(t, status.out.String(), "00002_orders.sql")
	require.Contains(t, status.out.String(), "migrations are pending")
	require.Zero(t, number(t, conn, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`))

	waiting := start(t, "up", "DATABASE_URL="+url, "MIGRATE_TIMEOUT=3s")
	require.Error(t, waiting.end())
	requireOneLine(t, waiting, "MIGRATE_TIMEOUT")
	require.Zero(t, number(t, conn, applied))
}

// Ensure a migration that is in others' way gives up its place, tries again, and gets there.
func TestABlockedMigrationTriesAgain(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	conn := session(t, url)
	tx := inTheWay(t, conn)
	up := start(t, "up", "DATABASE_URL="+url, "DB_LOCK_TIMEOUT=50ms")
	eventually(t, "two tries", func() bool { return strings.Count(up.out.String(), "tried again") >= 2 })
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, up.end(), up.out.String())
	require.Zero(t, number(t, conn, twice))
}

// Ensure SIGTERM in the middle of a migration undoes that one, keeps those before it, and leaves no lock behind: the
// next run goes on from there.
func TestSIGTERMLeavesWholeMigrations(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	conn, look := session(t, url), session(t, url)
	tx := inTheWay(t, conn)
	up := start(t, "up", "DATABASE_URL="+url, "DB_LOCK_TIMEOUT=1m")
	eventually(t, "a migration at work", func() bool { return number(t, look, inside) == 1 })
	require.NoError(t, up.cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, up.end())
	requireOneLine(t, up, "stopped by a signal")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, number(t, look, applied), "the first migration and no other")
	require.Zero(t, number(t, look, `SELECT count(*) FROM pg_tables WHERE tablename = 'orders'`))

	again := start(t, "up", "DATABASE_URL="+url)
	require.NoError(t, again.end(), again.out.String())
	require.Zero(t, number(t, look, twice))
}

// Ensure a failure is one line that names the variable at fault and shows no password.
func TestFailuresAreOneLine(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	unreachable := "postgres://orders:secret@" + closed.Addr().String() + "/orders"
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "DATABASE_URL is not set"},
		{[]string{"DATABASE_URL=http://x"}, "DATABASE_URL must be"},
		{[]string{"MIGRATE_DATABASE_URL=http://x", "DATABASE_URL=" + unreachable}, "MIGRATE_DATABASE_URL must be"},
		{[]string{"DATABASE_URL=" + unreachable, "DB_POOLER=transaction"}, "MIGRATE_DATABASE_URL is not set"},
		{[]string{"DATABASE_URL=" + unreachable, "DB_CONNECT_TIMEOUT=1s"}, "DATABASE_URL: no answer from the database within "},
		{[]string{"MIGRATE_DATABASE_URL=" + unreachable, "DB_CONNECT_TIMEOUT=1s"}, "MIGRATE_DATABASE_URL: no answer"},
		{[]string{"DATABASE_URL=" + unreachable, "MIGRATE_TIMEOUT=soon"}, "MIGRATE_TIMEOUT must be"},
	} {
		up := start(t, "up", c.env...)
		require.Error(t, up.end())
		requireOneLine(t, up, c.want)
		require.NotContains(t, up.out.String(), "secret")
	}
	unknown := start(t, "down")
	require.Error(t, unknown.end())
	require.Contains(t, unknown.out.String(), "usage: migrate up|status")
}

func requireOneLine(t testing.TB, c *command, text string) {
	t.Helper()
	require.Contains(t, c.out.String(), text)
	require.Equal(t, 1, strings.Count(c.out.String(), "\n"), c.out.String())
}
