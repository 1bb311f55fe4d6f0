package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/testkit"
)

// network is the way to a server, which a test can cut, slow down and let fall silent.
type network struct {
	URL   string
	t     *testing.T
	proxy *toxiproxy.Proxy
}

// networkTo stands between whoever uses its URL and the server of an address, be it of a database or of the web.
func networkTo(t *testing.T, address string) *network {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{t: t, proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", u.Host)}
	require.NoError(t, n.proxy.Start())
	t.Cleanup(n.proxy.Stop)
	u.Host = n.proxy.Listen
	n.URL = u.String()
	return n
}

// cut ends all connections and refuses new ones.
func (n *network) cut() { n.proxy.Stop() }

// mend undoes cut.
func (n *network) mend() {
	n.t.Helper()
	require.NoError(n.t, n.proxy.Start())
}

// slow delays what the server answers.
func (n *network) slow(milliseconds int) {
	n.t.Helper()
	n.toxic(fmt.Sprintf(`{"name":"t","type":"latency","attributes":{"latency":%d,"jitter":%d}}`, milliseconds, milliseconds/2))
}

// silence swallows what the server answers: connections stand, and nothing comes.
func (n *network) silence() {
	n.t.Helper()
	n.toxic(`{"name":"t","type":"timeout","attributes":{"timeout":0}}`)
}

// recover undoes slow and silence.
func (n *network) recover() {
	n.t.Helper()
	require.NoError(n.t, n.proxy.Toxics.RemoveToxic(n.t.Context(), "t"))
}

func (n *network) toxic(json string) {
	n.t.Helper()
	_, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(json))
	require.NoError(n.t, err)
}

// openShopBehind is openShop with a network between the service and its database.
func openShopBehind(t *testing.T, env ...string) (shop, *network) {
	t.Helper()
	s := openShop(t, env...)
	s.StopAPI(t)
	n := networkTo(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = n.URL
	s.StartAPI(t)
	s.alice = s.As(t, "alice")
	return s, n
}

// requireNoLeak waits until a part of the service has given all its connections back.
func requireNoLeak(t *testing.T, s *testkit.Service, part string) {
	t.Helper()
	testkit.Eventually(t, "all connections given back", func() bool {
		return scrape(t, s.Metrics[part]).value("orders_db_connections", "state", "used") == 0
	})
}
