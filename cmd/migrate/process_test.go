package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

// asMigrate is the variable that makes this test binary run the command, so that the tests need no second build.
const asMigrate = "TEST_AS_MIGRATE"

// wait bounds every wait of a test.
const wait = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asMigrate) != "" {
		main()
		return
	}
	pgtest.Main(m)
}

// command is the running command.
type command struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *output
	done chan error
}

// output may be read while the process still writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start starts the command with an argument; env is lines of NAME=value.
func start(t testing.TB, argument string, env ...string) *command {
	t.Helper()
	c := &command{t: t, cmd: exec.Command(os.Args[0], argument), out: &output{}, done: make(chan error, 1)}
	c.cmd.Env = append([]string{asMigrate + "=1"}, env...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	go func() { c.done <- c.cmd.Wait() }()
	return c
}

// end waits for the process to exit. It returns an error if the exit status is not 0.
func (c *command) end() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(wait):
		require.FailNow(c.t, "the command did not exit", c.out.String())
		return nil
	}
}

func emptyDatabase(t testing.TB) string {
	t.Helper()
	return pgtest.Database(t, pgtest.Migrator("empty", func(context.Context, *sql.DB) error { return nil }))
}

// session is a connection of the test's own.
func session(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t testing.TB, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

func number(t testing.TB, conn *pgx.Conn, query string) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, wait, 20*time.Millisecond, what)
}
