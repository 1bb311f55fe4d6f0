package pgtest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// Wait bounds every statement of a test and every wait for one. It is not a timing: a test that runs into it has
	// failed.
	Wait = 2 * time.Minute
	// closeWait bounds the close of a pool. Whatever still uses a connection by then has been left behind.
	closeWait = 30 * time.Second
)

// Pool opens a pool of a test, which is closed when the test ends.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool := Open(t, url)
	t.Cleanup(func() { Close(t, pool) })
	return pool
}

// Open is Pool for a test that closes the pool itself. A statement that is not done within Wait fails.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("address of the database: %v", err)
	}
	c.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(Wait.Milliseconds(), 10)
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatalf("open pool: %v", err)
	}
	return pool
}

// Close closes a pool. Unlike the pool's own Close it does not wait for ever for a connection that a failed test still
// holds, in a transaction that it did not end: the test fails for that, and goes on.
func Close(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(closeWait):
		t.Errorf("%d connections of the pool are still in use: a transaction was not ended", pool.Stat().AcquiredConns())
	}
}
