package testkit_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
)

// echo is a server behind a Proxy, and a client that uses a new connection for each request.
type echo struct {
	*testkit.Proxy
	t      *testing.T
	worked atomic.Int32
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.worked.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("ETag", r.Header.Get("If-Match"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	e.Proxy = testkit.StartProxy(t, server.URL)
	return e
}

func (e *echo) send(ctx context.Context) (status int, body string, err error) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/v1/orders?a=b", strings.NewReader("body"))
	require.NoError(e.t, err)
	r.Header.Set("If-Match", `"tag"`)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.Equal(e.t, `"tag"`, response.Header.Get("ETag"))
	return response.StatusCode, string(raw), err
}

func (e *echo) requirePassed() {
	e.t.Helper()
	before := e.worked.Load()
	status, body, err := e.send(e.t.Context())
	require.NoError(e.t, err)
	require.Equal(e.t, http.StatusCreated, status)
	require.Equal(e.t, "body", body)
	require.Equal(e.t, before+1, e.worked.Load())
}

// Ensure a lost answer reaches no client although the server worked, a lost request never reaches the server, and what is
// not lost passes unchanged.
func TestProxyLosesRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	e.requirePassed()
	require.Zero(t, e.Lost().Status)

	e.LoseAnswers(1)
	_, _, err := e.send(t.Context())
	require.Error(t, err)
	require.EqualValues(t, 2, e.worked.Load())
	require.Equal(t, http.StatusCreated, e.Lost().Status)
	require.Equal(t, "body", string(e.Lost().Body))

	e.LoseRequests(1)
	_, _, err = e.send(t.Context())
	require.Error(t, err)
	require.EqualValues(t, 2, e.worked.Load())
	e.requirePassed()
}

// Ensure a cut proxy refuses connections until it is mended, and one that is silent drops answers until it recovers.
func TestProxyCutsAndFallsSilent(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	e.Cut()
	e.Cut()
	_, _, err := e.send(t.Context())
	require.ErrorContains(t, err, "connection refused")
	require.Zero(t, e.worked.Load())
	require.NoError(t, e.Mend())
	e.requirePassed()

	e.Silence()
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { _, _, err := e.send(ctx); answered <- err }()
	testkit.Eventually(t, "the request", func() bool { return e.worked.Load() == 2 })
	require.Empty(t, answered)
	leave()
	require.ErrorIs(t, testkit.Take(t, answered), context.Canceled)
	e.Recover()
	e.Slow(1)
	e.requirePassed()
}

// database is a connection to PostgreSQL through a Proxy.
func database(t *testing.T) (*testkit.Proxy, *pgx.Conn, string) {
	t.Helper()
	url := pgtest.Database(t, pgtest.Migrator("numbers", func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE numbers (n int)")
		return err
	}))
	proxy := testkit.StartProxy(t, url)
	return proxy, connect(t, proxy.URL), url
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url+"&application_name=numbers")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func insert(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO numbers VALUES ($1)", 1)
		return err
	})
}

// Ensure a lost COMMIT has no effect, one whose reply is lost or held has one, and the client of a held one waits.
func TestProxyLosesCommits(t *testing.T) {
	t.Parallel()
	proxy, conn, url := database(t)
	rows := func() (n int) {
		require.NoError(t, connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM numbers").Scan(&n))
		return n
	}
	require.NoError(t, insert(t, conn))

	lost := proxy.OnNextCommit(testkit.LoseCommit)
	require.Error(t, insert(t, conn))
	testkit.Take(t, lost.Reached)
	require.Equal(t, 1, rows())

	unanswered := proxy.OnNextCommit(testkit.LoseReply)
	require.Error(t, insert(t, connect(t, proxy.URL)))
	testkit.Take(t, unanswered.Reached)
	require.Equal(t, 2, rows())

	held, answered := proxy.OnNextCommit(testkit.HoldReply), make(chan error, 1)
	last := connect(t, proxy.URL)
	go func() { answered <- insert(t, last) }()
	testkit.Take(t, held.Reached)
	require.Equal(t, 3, rows())
	require.Empty(t, answered)
	held.Release()
	require.NoError(t, testkit.Take(t, answered))
}

// Ensure the record of statements has each that was executed, by the flight that it was sent in.
func TestProxyRecordsStatements(t *testing.T) {
	t.Parallel()
	proxy, conn, _ := database(t)
	require.NoError(t, insert(t, conn))
	require.Empty(t, proxy.Statements("numbers"))
	proxy.Record()
	require.NoError(t, insert(t, conn))
	require.Equal(t, [][]string{{"begin"}, {"INSERT INTO numbers VALUES ($1)"}, {"commit"}}, proxy.Flights("numbers"))
	batch := &pgx.Batch{}
	batch.Queue("SELECT $1::int", 1)
	batch.Queue("SELECT $1::int", 2)
	proxy.Record()
	require.NoError(t, conn.SendBatch(t.Context(), batch).Close())
	require.Equal(t, [][]string{{"SELECT $1::int", "SELECT $1::int"}}, proxy.Flights("numbers"))
	require.Empty(t, proxy.Statements("another"))
}
