package testkit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// HTTPProxy stands between a caller and the API, to lose answers.
type HTTPProxy struct {
	URL    string
	Lost   chan Answer // what the API answered and the caller never saw
	losing atomic.Bool
	target *url.URL
}

// StartHTTPProxy starts a proxy before the API.
func (s *Service) StartHTTPProxy(t testing.TB) *HTTPProxy {
	t.Helper()
	target, err := url.Parse(s.URL)
	require.NoError(t, err)
	p := &HTTPProxy{Lost: make(chan Answer, 1), target: target}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// LoseNext cuts the connection of the next request once the API has answered it.
func (p *HTTPProxy) LoseNext() { p.losing.Store(true) }

// ServeHTTP implements http.Handler.
func (p *HTTPProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	proxy := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(p.target) }}
	if p.losing.CompareAndSwap(true, false) {
		proxy.ModifyResponse = p.lose
	}
	proxy.ServeHTTP(w, r)
}

func (p *HTTPProxy) lose(response *http.Response) error {
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	p.Lost <- Answer{response.StatusCode, response.Header, raw}
	panic(http.ErrAbortHandler) // the server cuts the connection
}
