package process

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func variable(name, value string) func(string) (string, bool) {
	return func(n string) (string, bool) { return value, n == name }
}

// Ensure the health check asks where the process listens, on the loopback where that is every address.
func TestHealthAsksWhereTheProcessListens(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"":               "http://127.0.0.1:8081/readyz",
		":9000":          "http://127.0.0.1:9000/readyz",
		"0.0.0.0:9000":   "http://127.0.0.1:9000/readyz",
		"[::]:9000":      "http://127.0.0.1:9000/readyz",
		"10.0.0.7:9000":  "http://10.0.0.7:9000/readyz",
		"localhost:9000": "http://localhost:9000/readyz",
	} {
		got, err := Ready().url(variable("OPS_ADDR", addr))
		require.NoError(t, err)
		require.Equal(t, want, got, addr)
	}
	_, err := Ready().url(variable("OPS_ADDR", "9000"))
	require.ErrorContains(t, err, "OPS_ADDR")
}

// Ensure only a 200 of the right path is healthy.
func TestHealthIsTheAnswerOfReadyz(t *testing.T) {
	t.Parallel()
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(status)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	lookup := variable("OPS_ADDR", server.Listener.Addr().String())
	require.ErrorContains(t, Ready().ask(t.Context(), lookup, nil), "503")
	status = http.StatusOK
	require.NoError(t, Ready().ask(t.Context(), lookup, nil))
	server.Close()
	require.ErrorContains(t, Ready().ask(t.Context(), lookup, nil), "not healthy")
}
