package testkit

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Link is the way to a server, which a test can cut, slow down and let fall silent.
type Link struct {
	URL   string
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// LinkTo stands between the callers that use its URL and the server of an address, be it of a database or of the web.
func LinkTo(t testing.TB, address string) *Link {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{t: t, proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", u.Host)}
	require.NoError(t, l.proxy.Start())
	t.Cleanup(l.proxy.Stop)
	u.Host = l.proxy.Listen
	l.URL = u.String()
	return l
}

// Cut ends all connections and refuses new ones.
func (l *Link) Cut() { l.proxy.Stop() }

// Mend undoes Cut.
func (l *Link) Mend() {
	l.t.Helper()
	require.NoError(l.t, l.proxy.Start())
}

// Slow delays what the server answers.
func (l *Link) Slow(milliseconds int) {
	l.t.Helper()
	l.toxic(fmt.Sprintf(`{"name":"t","type":"latency","attributes":{"latency":%d,"jitter":%d}}`, milliseconds, milliseconds/2))
}

// Silence swallows what the server answers: connections stand, and nothing comes.
func (l *Link) Silence() {
	l.t.Helper()
	l.toxic(`{"name":"t","type":"timeout","attributes":{"timeout":0}}`)
}

// Recover undoes Slow and Silence.
func (l *Link) Recover() {
	l.t.Helper()
	require.NoError(l.t, l.proxy.Toxics.RemoveToxic(l.t.Context(), "t"))
}

func (l *Link) toxic(json string) {
	l.t.Helper()
	_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(json))
	require.NoError(l.t, err)
}
