package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// dial opens a connection on which a test writes what no client library would.
func (b boundary) dial() net.Conn {
	b.t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(b.url, "http://"), testkit.Wait)
	require.NoError(b.t, err)
	require.NoError(b.t, conn.SetDeadline(time.Now().Add(testkit.Wait)))
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// raw writes bytes and reads one answer.
func (b boundary) raw(conn net.Conn, request string) (*http.Response, string) {
	b.t.Helper()
	_, err := io.WriteString(conn, request)
	require.NoError(b.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(b.t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	return response, string(body)
}

const placing = "POST /v1/orders HTTP/1.1\r\nHost: orders\r\nAuthorization: Bearer orders:write\r\nIdempotency-Key: k1\r\n" +
	"Content-Type: application/json\r\n"

// Ensure a body that arrives too slowly is told so, as something to try again, whether its length is known or not, and
// that it is not counted as a client that has gone.
func TestSlowBodiesTimeOut(t *testing.T) {
	t.Parallel()
	b := startWith(t, tokens{}, func(s *http.Server) { s.ReadTimeout = 100 * time.Millisecond })
	for _, request := range []string{
		placing + "Content-Length: 100\r\n\r\n",
		placing + "Content-Length: 100\r\n\r\n{\"currency\":",
		placing + "Transfer-Encoding: chunked\r\n\r\n",
		placing + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"cur\r\n",
		strings.Replace(placing, "/v1/orders", anOrder+"/cancellation", 1) + "If-Match: " + aVersion + "\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		response, body := b.raw(b.dial(), request)
		require.Equal(t, http.StatusRequestTimeout, response.StatusCode, body)
		require.Contains(t, body, `"code":"request_timeout"`)
		require.True(t, response.Close, "the connection has half a request on it")
		require.Contains(t, b.outcomes.next(t), " request_timeout")
	}
}

// Ensure a client that breaks off in the middle of its body has gone: that is no fault of the service.
func TestBrokenBodiesAreTheClients(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, request := range []string{
		placing + "Content-Length: 100\r\n\r\n{\"currency\":",
		placing + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"cur\r\n",
	} {
		conn := b.dial()
		_, err := io.WriteString(conn, request)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, "place-order client_gone", b.outcomes.next(t))
	}
	require.NotContains(t, b.log.String(), "ERROR")
}

// Ensure a client that expects 100 before it sends a body beyond the bound is refused at once, and that one within it is
// asked to go on.
func TestExpectationsBeyondTheBoundAreRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	const expecting = placing + "Expect: 100-continue\r\nContent-Length: "
	response, body := b.raw(b.dial(), fmt.Sprintf("%s%d\r\n\r\n", expecting, 64<<10+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode, body)
	require.True(t, response.Close)
	response, _ = b.raw(b.dial(), strings.Replace(expecting, "Content-Type", "Content-Encoding: gzip\r\nContent-Type", 1)+"10\r\n\r\n")
	require.Equal(t, http.StatusUnsupportedMediaType, response.StatusCode)
	response, _ = b.raw(b.dial(), strings.Replace(expecting, "Authorization", "X-Authorization", 1)+"10\r\n\r\n")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	response, _ = b.raw(b.dial(), fmt.Sprintf("%s%d\r\n\r\n", expecting, 64<<10))
	require.Equal(t, http.StatusContinue, response.StatusCode)
}

// Ensure what net/http answers before any handler runs, and what it makes of two lengths, is as docs/operations/http.md
// tells it.
func TestAnswersBeforeAnyHandler(t *testing.T) {
	t.Parallel()
	b := startWith(t, tokens{}, func(s *http.Server) { s.MaxHeaderBytes = 1 << 10 })
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"no request line":           {"hello\r\n\r\n", 400},
		"no version":                {"GET /v1/orders\r\n\r\n", 400},
		"no such version":           {"GET /v1/orders HTTP/3.7\r\nHost: orders\r\n\r\n", 505},
		"no host":                   {"GET /v1/orders HTTP/1.1\r\n\r\n", 400},
		"two hosts":                 {"GET /v1/orders HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"a bad escape in the path":  {"GET /v1/orders/%zz HTTP/1.1\r\nHost: orders\r\n\r\n", 400},
		"a control byte in a value": {"GET /v1/orders HTTP/1.1\r\nHost: orders\r\nIdempotency-Key: a\x01b\r\n\r\n", 400},
		"a space in a name":         {"GET /v1/orders HTTP/1.1\r\nHost: orders\r\nIf-Match : *\r\n\r\n", 400},
		"two lengths":               {placing + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"another coding":            {placing + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
		"another expectation":       {placing + "Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417},
		"too many headers":          {"GET /v1/orders HTTP/1.1\r\nHost: orders\r\nX: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", 431},
	} {
		response, body := b.raw(b.dial(), c.request)
		require.Equal(t, c.status, response.StatusCode, "%s: %s", name, body)
		require.NotEqual(t, "application/problem+json", response.Header.Get("Content-Type"), name)
		require.Empty(t, response.Header.Get("Request-Id"), name)
		require.True(t, response.Close, name)
	}
	require.Empty(t, b.outcomes, "a request that no handler saw is in no metric")
}

// Ensure a chunked body counts for what its chunks say, whatever Content-Length says beside it (RFC 9112, section 6.3).
// What follows the last chunk is the next request: net/http keeps the connection, so a proxy before it must not count by
// the length. docs/operations/http.md tells it.
func TestChunksOutrankALength(t *testing.T) {
	t.Parallel()
	b := start(t)
	const chunks, next = "2\r\n{}\r\n0\r\n\r\n", "GET /v1/orders HTTP/1.1\r\nHost: orders\r\n\r\n"
	both := fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunks+next))
	response, body := b.raw(b.dial(), placing+both+chunks+next)
	require.Equal(t, http.StatusBadRequest, response.StatusCode, body)
	require.Equal(t, "place-order validation_failed", b.outcomes.next(t))
	require.Equal(t, "list-orders unauthenticated", b.outcomes.next(t))
}
