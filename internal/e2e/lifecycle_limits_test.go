package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// dial connects to the API and sends what a client would not.
func dial(t *testing.T, s *testkit.Service, request string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.URL, "http://"), testkit.Wait)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.Wait)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	return conn
}

// Ensure a client that sends its headers slowly, its body slowly, or headers without end is cut off: it holds no
// connection of the database meanwhile, and others are served.
func TestLifecycleServerCutsBadClientsOff(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	head := "POST /v1/orders HTTP/1.1\r\nHost: orders.test\r\nAuthorization: Bearer " + s.alice.Token + "\r\n"

	slowHeaders := dial(t, s.Service, head)
	slowBody := dial(t, s.Service, head+"Idempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{")
	hugeHeaders := dial(t, s.Service, head+"X-Filler: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	s.place("pm_card_visa")
	testkit.Eventually(t, "no connection in use, but for the notification of the worker", func() bool {
		return scrape(t, s.Metrics["api"]).Value("orders_db_connections", "state", "used") == 0
	})

	answer, err := http.ReadResponse(bufio.NewReader(hugeHeaders), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)

	rest, err := io.ReadAll(slowHeaders)
	require.NoError(t, err, "a client that sends its headers slowly is not cut off")
	require.NotContains(t, string(rest), "201")

	answer, err = http.ReadResponse(bufio.NewReader(slowBody), nil)
	require.NoError(t, err, "a client that sends its body slowly is not answered")
	require.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
	_, err = io.ReadAll(slowBody)
	require.NoError(t, err, "a client that sends its body slowly is not cut off")
	requireStored(t, s.Service, 1)
}
