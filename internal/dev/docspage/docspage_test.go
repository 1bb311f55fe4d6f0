package docspage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/docspage"
)

// serve serves the page before an API that answers with what it was asked.
func serve(t *testing.T, token func(context.Context) (string, error)) (get func(path string) (status int, h http.Header, body string)) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, r.URL, " ", r.Header.Get("Authorization"))
	}))
	t.Cleanup(api.Close)
	address, err := url.Parse(api.URL)
	require.NoError(t, err)
	handler := docspage.Handler(address, token)
	return func(path string) (int, http.Header, string) {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Security-Policy", "of the listener")
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer b")
		handler.ServeHTTP(w, r)
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		return w.Code, w.Header(), string(body)
	}
}

// Ensure that requests below /v1/ and that for the contract reach the API as they are, and come back with its headers alone.
func TestRequestsReachTheAPI(t *testing.T) {
	t.Parallel()
	get := serve(t, nil)
	for _, path := range []string{"/v1/orders?limit=1", "/openapi.yaml"} {
		status, header, body := get(path)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, path+" Bearer b", body)
		require.Equal(t, `"1"`, header.Get("ETag"))
		require.Empty(t, header.Get("Content-Security-Policy"))
	}
}

// Ensure that the page, its renderer and a token are there, and that the page may load nothing from elsewhere.
func TestPage(t *testing.T) {
	t.Parallel()
	get := serve(t, func(context.Context) (string, error) { return "minted", nil })
	for path, part := range map[string]string{
		"/docs/": "/docs/swagger-ui/swagger-ui-bundle.js", "/docs/docs.js": "SwaggerUIBundle", "/docs/docs.css": ".note",
		"/docs/swagger-ui/swagger-ui-bundle.js": "SwaggerUIBundle", "/docs/swagger-ui/swagger-ui.css": ".swagger-ui",
	} {
		status, header, body := get(path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, part, path)
		require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'self'", path)
	}
	_, _, body := get("/docs/token")
	require.JSONEq(t, `{"access_token":"minted","token_type":"Bearer"}`, body)
}

// Ensure that a token that cannot be minted is said to be so, without the reason.
func TestNoToken(t *testing.T) {
	t.Parallel()
	status, _, body := serve(t, func(context.Context) (string, error) { return "", errors.New("secret") })("/docs/token")
	require.Equal(t, http.StatusInternalServerError, status)
	require.NotContains(t, body, "secret")
}
