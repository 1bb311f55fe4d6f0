package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/httpapi/openapi"
)

// canned answers two operations without a use case behind them.
type canned struct {
	openapi.StrictServerInterface
	orders int
}

func (c canned) ListOrders(context.Context, openapi.ListOrdersRequestObject) (openapi.ListOrdersResponseObject, error) {
	return openapi.ListOrders200JSONResponse{
		Body:    openapi.OrderList{Items: make([]openapi.OrderSummary, c.orders)},
		Headers: openapi.ListOrders200ResponseHeaders{CacheControl: cacheControl},
	}, nil
}

func (c canned) GetProduct(context.Context, openapi.GetProductRequestObject) (openapi.GetProductResponseObject, error) {
	return openapi.GetProduct200JSONResponse{Headers: openapi.GetProduct200ResponseHeaders{ETag: `"now"`, CacheControl: cacheControl}}, nil
}

type everybody struct{}

func (everybody) Authenticate(context.Context, string) (app.Actor, error) {
	return app.Actor{Tenant: "default", ID: "alice", Scopes: []string{"orders:read", "catalog:read"}}, nil
}

type codes chan string

func (c codes) Request(_ context.Context, _, code string, _ bool, _ time.Duration) { c <- code }

func handlerOf(t *testing.T, handlers openapi.StrictServerInterface, log *bytes.Buffer) (http.Handler, codes) {
	t.Helper()
	observed := make(codes, 1)
	handler, err := newHandler(handlers, everybody{}, nil, observed, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return handler, observed
}

// pipes is a listener of one connection without any buffer: what is not read is not sent.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Ensure a client that does not read its answer, or goes away while it is sent, is counted as gone and logged as no
// fault: both where the answer is a page and where it is a problem.
func TestUnreadAnswersAreTheClients(t *testing.T) {
	t.Parallel()
	long := "/v1/orders?"
	for i := range 100 {
		long += fmt.Sprintf("&unknown%d=1", i)
	}
	for _, target := range []string{"/v1/orders", long, "/openapi.yaml"} { // longer answers than net/http's buffer
		for _, closes := range []bool{false, true} {
			var log bytes.Buffer
			handler, observed := handlerOf(t, canned{orders: 1000}, &log)
			late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the work's time is up long before the answer's
				ctx, cancel := context.WithTimeout(r.Context(), 0)
				defer cancel()
				handler.ServeHTTP(w, r.WithContext(ctx))
			})
			server := &http.Server{Handler: late, ReadHeaderTimeout: time.Minute, WriteTimeout: 50 * time.Millisecond}
			listener := make(pipes, 1)
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(listener) }()
			ours, theirs := net.Pipe()
			listener <- theirs
			require.NoError(t, ours.SetDeadline(time.Now().Add(time.Minute)))
			_, err := ours.Write([]byte("GET " + target + " HTTP/1.1\r\nHost: orders\r\nAuthorization: Bearer x\r\n\r\n"))
			require.NoError(t, err)
			if closes {
				require.NoError(t, ours.Close())
			}
			require.Equal(t, clientGone, <-observed, "%s, closes: %t", target, closes)
			require.NoError(t, ours.Close())
			close(listener)
			require.ErrorIs(t, <-ended, net.ErrClosed)
			require.NotContains(t, log.String(), "level=ERROR")
		}
	}
}

// Ensure an answer that has begun and cannot be finished is cut off, so that no client takes half of it for the whole,
// and that it is counted and logged as a fault.
func TestHalfAnAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	observed := make(codes, 1)
	p := newProblems(slog.New(slog.NewTextHandler(&log, nil)))
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("broken")
	})
	server := httptest.NewServer(observe(observed, p.log)(p.recoverPanics(broken)))
	defer server.Close()
	response, err := (&http.Client{Timeout: time.Minute}).Get(server.URL)
	if err == nil {
		_, err = bytes.NewBuffer(nil).ReadFrom(response.Body)
		_ = response.Body.Close()
	}
	require.Error(t, err)
	require.Equal(t, string(codeInternal), <-observed)
	require.Contains(t, log.String(), "level=ERROR")
}

// Ensure a read is answered as its preconditions ask, in the order of RFC 9110, section 13.2.2: If-Match strongly, then
// If-None-Match weakly; and that what has no tag matches * alone.
func TestReadsEvaluateTheirPreconditions(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler, observed := handlerOf(t, canned{}, &log)
	for _, c := range []struct {
		match, none    string
		tagged, listed int
	}{
		{"", "", 200, 200},
		{`"now"`, "", 200, 412},
		{`"old", "now"`, "", 200, 412},
		{`W/"now"`, "", 412, 412},
		{`"old"`, "", 412, 412},
		{"*", "", 200, 200},
		{" ", "", 200, 200},
		{"", `"now"`, 304, 200},
		{"", `W/"now"`, 304, 200},
		{"", `"old"`, 200, 200},
		{"", "*", 304, 304},
		{`"old"`, `"now"`, 412, 412},
		{`"now"`, `"now"`, 304, 412},
		{`"now"`, `"old"`, 200, 412},
		{"*", "*", 304, 304},
	} {
		for target, want := range map[string]int{"/v1/products/TEA-001": c.tagged, "/v1/orders": c.listed} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				r := httptest.NewRequest(method, target, nil)
				r.Header.Set("Authorization", "Bearer x")
				r.Header.Set(headerIfMatch, c.match)
				r.Header.Set(headerIfNoneMatch, c.none)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				require.Equal(t, want, w.Code, "%s %s %+v", method, target, c)
				code := <-observed
				switch want {
				case http.StatusPreconditionFailed:
					require.Equal(t, string(codePreconditionFailed), code)
					require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
					require.Empty(t, w.Header().Get("ETag"))
				case http.StatusNotModified:
					require.Equal(t, "ok", code)
					require.Empty(t, w.Header().Get("Content-Type"))
					require.Empty(t, w.Body.Bytes())
					require.Equal(t, cacheControl, w.Header().Get("Cache-Control"))
				default:
					require.Equal(t, mediaJSON, w.Header().Get("Content-Type")) //nolint:testifylint // a media type, no JSON
					require.Equal(t, cacheControl, w.Header().Get("Cache-Control"))
				}
			}
		}
	}
}

// Ensure the contract is served as it is, without a token, to GET and HEAD, and conditionally.
func TestTheContractIsServed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	handler, observed := handlerOf(t, canned{}, &log)
	ask := func(method, known string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/openapi.yaml", nil)
		r.Header.Set(headerIfNoneMatch, known)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		<-observed
		return w
	}
	get := ask(http.MethodGet, "")
	require.Equal(t, http.StatusOK, get.Code)
	require.Equal(t, "application/yaml", get.Header().Get("Content-Type"))
	require.Contains(t, get.Body.String(), "openapi: 3.0.3")
	require.Equal(t, http.StatusNotModified, ask(http.MethodGet, get.Header().Get("ETag")).Code)
	require.Equal(t, http.StatusOK, ask(http.MethodHead, "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, ask(http.MethodPost, "").Code)
}
