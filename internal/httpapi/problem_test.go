package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure a path that no operation has is a problem of its own, with and without a token.
func TestUnknownRoutesAreProblems(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/orders", "/v1/orders/", "/V1/orders", "/v1/orders/x/y", "/v1//orders", "//evil.example/x", "/v1/orders/../x",
		anOrder + "/payment/x", "/v1%2Forders", "/v1/orders%2F", "/openapi.yaml/", "/openapi%2Eyaml", "/v1/products/TEA-001/", "/v1/or%64ers%00", "/v1/%F0%9F%8D%B5", "/metrics", "/livez", "/debug/pprof/",
	} {
		b.refused(path, ask{method: "GET", path: path}, http.StatusNotFound, "route_not_found")
		b.refused(path, ask{method: "GET", path: path, header: map[string][]string{"Authorization": nil}}, http.StatusNotFound, "route_not_found")
		for _, method := range []string{"POST", "OPTIONS", "TRACE", "BREW", "get"} {
			b.refused(method+" "+path, ask{method: method, path: path}, http.StatusNotFound, "route_not_found")
		}
		require.Equal(t, http.StatusNotFound, b.send(ask{method: "HEAD", path: path}).Status, path)
	}
}

// Ensure a method that a path does not have is answered with those that it has.
func TestUnknownMethodsNameTheKnown(t *testing.T) {
	t.Parallel()
	b := start(t)
	allowed := map[string]string{
		"/v1/orders":                             "GET, HEAD, POST",
		anOrder:                                  "GET, HEAD",
		anOrder + "/payment":                     "GET, HEAD",
		anOrder + "/shipping-address":            "PUT",
		anOrder + "/cancellation":                "POST",
		anOrder + "/shipment":                    "POST",
		anOrder + "/refunds":                     "POST",
		"/v1/products":                           "GET, HEAD",
		"/v1/products/TEA-001":                   "GET, HEAD, PUT",
		"/v1/products/TEA-001/stock":             "GET, HEAD",
		"/v1/products/TEA-001/stock-adjustments": "POST",
		"/v1/products/TEA%2F1":                   "GET, HEAD, PUT", // a slash of the sku, not of the path
		"/v1/products/%2F/stock":                 "GET, HEAD",
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get"} {
			if strings.Contains(", "+methods+", ", ", "+method+", ") {
				continue
			}
			a := b.send(ask{method: method, path: path})
			require.Equal(t, http.StatusMethodNotAllowed, a.Status, "%s %s", method, path)
			require.Equal(t, methods, a.Header.Get("Allow"), "%s %s", method, path)
		}
	}
}

// Ensure 401 comes before any look at parameters, headers or body, with a challenge and nothing that tells why.
func TestUnauthenticatedComesFirst(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, c := range []struct {
		authorization []string
		challenge     string
	}{
		{nil, `Bearer realm="orders"`},
		{[]string{""}, `Bearer realm="orders"`},
		{[]string{"Bearer"}, `Bearer realm="orders", error="invalid_request"`},
		{[]string{"Bearer "}, `Bearer realm="orders", error="invalid_request"`},
		{[]string{"Bearer a b"}, `Bearer realm="orders", error="invalid_request"`},
		{[]string{"Bearer a\tb"}, `Bearer realm="orders", error="invalid_request"`},
		{[]string{"Bearer\ta"}, `Bearer realm="orders"`},
		{[]string{"Bearerx " + tokenOfNobody}, `Bearer realm="orders"`},
		{[]string{"bEARER  " + tokenOfNobody}, `Bearer realm="orders", error="invalid_token"`},
		{[]string{"Basic YTpi"}, `Bearer realm="orders"`},
		{[]string{"Bearer " + tokenOfNobody}, `Bearer realm="orders", error="invalid_token"`},
		{[]string{"Bearer orders:write", "Bearer orders:read"}, `Bearer realm="orders", error="invalid_request"`},
		{[]string{"Basic YTpi", "Bearer orders:read"}, `Bearer realm="orders", error="invalid_request"`},
	} {
		for _, o := range hopeless() {
			o.header = map[string][]string{"Authorization": c.authorization}
			a := b.send(o)
			require.Equal(t, http.StatusUnauthorized, a.Status, "%s %s %q: %s", o.method, o.path, c.authorization, a.Body)
			require.Equal(t, c.challenge, a.Header.Get("WWW-Authenticate"))
		}
	}
}

// Ensure 403 comes before any look at parameters, headers or body, and names the scope that the operation requires: every
// scope but that one is not enough.
func TestForbiddenComesBeforeTheRequestIsLookedAt(t *testing.T) {
	t.Parallel()
	b := start(t)
	for i, o := range operations() {
		others := strings.Join(without(strings.Fields(everyScope), o.scope), ",")
		for _, scopes := range []string{others, "none", strings.ToUpper(o.scope), o.scope + "x"} {
			bad := hopeless()[i]
			bad.header = map[string][]string{"Authorization": {"Bearer " + scopes}}
			a := b.send(bad)
			require.Equal(t, http.StatusForbidden, a.Status, "%s %s: %s", o.method, o.path, a.Body)
			require.Equal(t, `Bearer realm="orders", error="insufficient_scope", scope="`+o.scope+`"`, a.Header.Get("WWW-Authenticate"))
		}
	}
}

// hopeless is every operation with everything wrong that can be: parameters, headers, media type and body.
func hopeless() []ask {
	var all []ask
	for _, o := range operations() {
		path := strings.NewReplacer("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42", "no-id", "TEA-001", "no%00sku").Replace(o.path)
		bad := ask{method: o.method, path: path + "?limit=x&after=!&status=%zz"}
		if o.body != "" {
			bad.body = "{{{"
		}
		all = append(all, bad)
	}
	return all
}

func without(scopes []string, one string) []string {
	var rest []string
	for _, s := range scopes {
		if s != one {
			rest = append(rest, s)
		}
	}
	return rest
}

// Ensure the order of the checks after the scope is headers, parameters, body, each with its own code.
func TestChecksComeInOrder(t *testing.T) {
	t.Parallel()
	b := start(t)
	path := "/v1/orders/no-id/cancellation"
	header := map[string][]string{}
	send := func(name string, status int, code string) {
		t.Helper()
		b.refused(name, ask{method: "POST", path: path, body: "{{{", header: header}, status, code)
	}
	send("no key", http.StatusBadRequest, "idempotency_key_required")
	header["Idempotency-Key"] = []string{"a b"}
	send("a bad key", http.StatusBadRequest, "invalid_idempotency_key")
	header["Idempotency-Key"] = []string{"k1"}
	send("no version", http.StatusPreconditionRequired, "precondition_required")
	header["If-Match"] = []string{"x"}
	send("a bad version", http.StatusBadRequest, "invalid_precondition")
	header["If-Match"] = []string{aVersion}
	send("a bad id", http.StatusBadRequest, "validation_failed")
	path = anOrder + "/cancellation"
	send("a bad body", http.StatusBadRequest, "malformed_request")
}

// Ensure a panic is answered as a problem that tells nothing, and is logged with where it happened.
func TestPanicsAreProblems(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, o := range operations() {
		a := b.send(ask{method: o.method, path: o.path, body: o.body, header: o.header})
		require.Equal(t, http.StatusInternalServerError, a.Status, "%s %s: %s", o.method, o.path, a.Body)
		if o.method != http.MethodHead {
			require.Equal(t, "internal_error", a.Code())
		}
	}
	require.Contains(t, b.log.String(), "nil pointer")
	require.Contains(t, b.log.String(), "goroutine")
}

// Ensure 503 tells when to come back and nothing of the cause.
func TestUnavailableSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, o := range operations() {
		a := b.send(ask{method: o.method, path: o.path, header: map[string][]string{"Authorization": {"Bearer " + tokenTooEarly}}})
		require.Equal(t, http.StatusServiceUnavailable, a.Status)
		require.Regexp(t, `^[1-9][0-9]*$`, a.Header.Get("Retry-After"))
		require.NotContains(t, string(a.Body), "refused")
	}
}

// Ensure no problem may be kept by a cache.
func TestProblemsAreNotCached(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, path := range []string{"/v1/none", "/v1/orders/no-id"} {
		require.Equal(t, "no-store", b.send(ask{method: "GET", path: path}).Header.Get("Cache-Control"))
	}
}
