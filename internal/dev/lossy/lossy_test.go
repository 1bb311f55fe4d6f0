package lossy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/lossy"
)

// Ensure a lost answer reaches nobody although the service worked, a lost request never reaches the service, and all
// else passes as it is.
func TestLosesWhatItWasAskedTo(t *testing.T) {
	t.Parallel()
	var worked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		worked.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("ETag", r.Header.Get("If-Match"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	proxy, err := lossy.Start(server.URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	send := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL()+"/v1/orders?a=b", strings.NewReader("body"))
		require.NoError(t, err)
		r.Header.Set("If-Match", `"tag"`)
		return http.DefaultClient.Do(r)
	}

	proxy.LoseAnswers(1)
	_, err = send()
	require.Error(t, err)
	require.EqualValues(t, 1, worked.Load())
	require.Equal(t, http.StatusCreated, proxy.Lost())

	proxy.LoseRequests(1)
	_, err = send()
	require.Error(t, err)
	require.EqualValues(t, 1, worked.Load())

	response, err := send()
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
	require.Equal(t, `"tag"`, response.Header.Get("ETag"))
	require.EqualValues(t, 2, worked.Load())
}
