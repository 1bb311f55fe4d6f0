package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure a client key is one line of 1 to 255 visible ASCII characters, and that it is asked for where it is needed and
// nowhere else.
//
// Standard: litespec/ext/concurrency#use-the-standard-idempotency-header
func TestClientKeysAreBounded(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, c := range []struct {
		name  string
		lines []string
		code  string
	}{
		{"none", nil, "idempotency_key_required"},
		{"empty", []string{""}, "invalid_idempotency_key"},
		{"too long", []string{strings.Repeat("k", 256)}, "invalid_idempotency_key"},
		{"a space", []string{"a b"}, "invalid_idempotency_key"},
		{"a tab", []string{"a\tb"}, "invalid_idempotency_key"},
		{"not ASCII", []string{"clé"}, "invalid_idempotency_key"},
		{"two lines", []string{"a", "b"}, "invalid_idempotency_key"},
		{"the same line twice", []string{"a", "a"}, "invalid_idempotency_key"},
		{"the longest", []string{strings.Repeat("k", 255)}, "validation_failed"}, // of the body: the key has passed
		{"every character", []string{`!"#$%&'()*+,-./0123456789:;<=>?@AZ[\]^_az{|}~`}, "validation_failed"},
		{"spaces around, which belong to no value", []string{" k1\t"}, "validation_failed"},
	} {
		for _, o := range operations() {
			_, needed := o.header["Idempotency-Key"]
			header := map[string][]string{"If-Match": o.header["If-Match"], "Idempotency-Key": c.lines}
			switch {
			case needed:
				b.refused(c.name+" "+o.path, ask{method: o.method, path: o.path, body: "[]", header: header}, http.StatusBadRequest, c.code)
			case o.body != "":
				b.refused(c.name+" "+o.path, ask{method: o.method, path: o.path, body: "[]", header: header}, http.StatusBadRequest, "validation_failed")
			}
		}
	}
}

// Ensure If-Match is missing, malformed or read exactly as RFC 9110 says, on every operation that takes a version, and
// that no other write looks at it. A read may do without.
//
// Standard: litespec/ext/concurrency#return-precondition-outcomes
// Standard: litespec/ext/concurrency#limit-version-checks
func TestPreconditionsAreCheckedWhereTheyCount(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, c := range []struct {
		name   string
		lines  []string
		status int
		code   string
	}{
		{"none", nil, http.StatusPreconditionRequired, "precondition_required"},
		{"empty", []string{""}, http.StatusPreconditionRequired, "precondition_required"},
		{"blank", []string{" "}, http.StatusPreconditionRequired, "precondition_required"},
		{"two empty lines", []string{"", ""}, http.StatusPreconditionRequired, "precondition_required"},
		{"only commas", []string{",", " ,"}, http.StatusPreconditionRequired, "precondition_required"},
		{"any", []string{"*"}, http.StatusPreconditionRequired, "precondition_required"},
		{"unquoted", []string{"uhXBLtDfl2YgE7IxbCnfwg"}, http.StatusBadRequest, "invalid_precondition"},
		{"unbalanced", []string{`"uhXBLtDfl2YgE7IxbCnfwg`}, http.StatusBadRequest, "invalid_precondition"},
		{"any in a list", []string{`*, "x"`}, http.StatusBadRequest, "invalid_precondition"},
		{"any on a line of its own", []string{"*", `"x"`}, http.StatusBadRequest, "invalid_precondition"},
		{"any twice", []string{"*", "*"}, http.StatusBadRequest, "invalid_precondition"},
		{"longer than the contract says", []string{strings.Repeat(`"uhXBLtDfl2YgE7IxbCnfwg",`, 80)}, http.StatusBadRequest, "invalid_precondition"},
		{"malformed on the second line", []string{aVersion, "x"}, http.StatusBadRequest, "invalid_precondition"},
	} {
		for _, o := range operations() {
			header := map[string][]string{"Idempotency-Key": o.header["Idempotency-Key"], "If-Match": c.lines}
			a := ask{method: o.method, path: o.path, body: o.body, header: header}
			if _, versioned := o.header["If-Match"]; versioned {
				b.refused(c.name+" "+o.path, a, c.status, c.code)
				continue
			}
			if c.code == "invalid_precondition" && strings.HasSuffix(o.scope, ":read") {
				require.Equal(t, http.StatusBadRequest, b.send(a).Status, "%s: %s %s", c.name, o.method, o.path)
				continue
			}
			require.Equal(t, http.StatusInternalServerError, b.send(a).Status, "%s: %s %s looks at If-Match", c.name, o.method, o.path)
		}
	}
}

// Ensure put-product asks for exactly one precondition, and creates on * alone.
func TestPutProductTakesOnePrecondition(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, c := range []struct {
		name        string
		match, none []string
		status      int
		code        string
	}{
		{"neither", nil, nil, http.StatusPreconditionRequired, "precondition_required"},
		{"both", []string{aVersion}, []string{"*"}, http.StatusBadRequest, "invalid_precondition"},
		{"both, one of them any", []string{"*"}, []string{"*"}, http.StatusBadRequest, "invalid_precondition"},
		{"none of a tag", nil, []string{aVersion}, http.StatusBadRequest, "invalid_precondition"},
		{"none of a weak tag", nil, []string{"W/" + aVersion}, http.StatusBadRequest, "invalid_precondition"},
		{"none, malformed", nil, []string{"x"}, http.StatusBadRequest, "invalid_precondition"},
		{"none of any and more", nil, []string{"*", aVersion}, http.StatusBadRequest, "invalid_precondition"},
		{"none, blank", nil, []string{" "}, http.StatusBadRequest, "invalid_precondition"},
	} {
		b.refused(c.name, ask{
			method: "PUT", path: "/v1/products/TEA-001", body: `{"name":"Tea","price":{"amount":1,"currency":"EUR"},"active":true}`,
			header: map[string][]string{"If-Match": c.match, "If-None-Match": c.none},
		}, c.status, c.code)
	}
}

// Ensure parameters of path and query are held to the contract, and cursors to their list.
func TestParametersAreBounded(t *testing.T) {
	t.Parallel()
	b := start(t)
	for path, code := range map[string]string{
		"/v1/orders/no-id": "validation_failed",
		"/v1/orders/019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c4":      "validation_failed",
		"/v1/orders/{019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42}":   "validation_failed",
		"/v1/orders/urn:uuid:019ae6a0-58c0-7b1e-9d3c-3f3a5b1": "validation_failed",
		"/v1/orders/019ae6a058c07b1e9d3c3f3a5b1f6c42":         "validation_failed",
		"/v1/products/tea":                             "validation_failed",
		"/v1/products/TEA%00":                          "validation_failed",
		"/v1/products/TEA%2F1":                         "validation_failed",
		"/v1/products/%F0%9F%8D%B5":                    "validation_failed",
		"/v1/products/" + strings.Repeat("A", 65):      "validation_failed",
		"/v1/orders?limit=0":                           "validation_failed",
		"/v1/orders?limit=-1":                          "validation_failed",
		"/v1/orders?limit=101":                         "validation_failed",
		"/v1/orders?limit=99999999999999999999":        "validation_failed",
		"/v1/orders?limit=1.5":                         "validation_failed",
		"/v1/orders?limit=1e1":                         "validation_failed",
		"/v1/orders?limit=ten":                         "validation_failed",
		"/v1/orders?limit=":                            "validation_failed",
		"/v1/orders?limit=1&limit=2":                   "validation_failed",
		"/v1/orders?status=lost":                       "validation_failed",
		"/v1/orders?status=":                           "validation_failed",
		"/v1/orders?status=active":                     "validation_failed",
		"/v1/products?status=open":                     "validation_failed",
		"/v1/orders?after=":                            "validation_failed",
		"/v1/orders?after=" + strings.Repeat("A", 513): "validation_failed",
		"/v1/orders?x=y":                               "validation_failed",
		"/v1/orders?Limit=1":                           "validation_failed",
		"/v1/orders?limit":                             "validation_failed",
		"/v1/orders?limit=+1":                          "validation_failed",
		"/v1/orders?limit=0x1":                         "validation_failed",
		"/v1/orders?limit=1;status=open":               "validation_failed",
		"/v1/products/TEA-001?x":                       "validation_failed",
		"/v1/products/TEA-001/stock?fields=on_hand":    "validation_failed",
		anOrder + "?limit=1":                           "validation_failed",
		"/v1/orders?%zz":                               "validation_failed",
		"/v1/orders?after=!":                           "invalid_cursor",
		"/v1/orders?after=AAAA":                        "invalid_cursor",
		"/v1/orders?after=%00":                         "invalid_cursor",
		"/v1/orders?after=b" + strings.Repeat("A", 22): "invalid_cursor", // an order cursor of no order
		"/v1/orders?after=cEFBQUFBQUFBQUFBQUFBQUE":     "invalid_cursor", // a product's, of a sku as long as an id
		"/v1/products?after=bwGa5qBYwHsenTw_OlsfbEI":   "invalid_cursor", // an order's
		"/v1/products?after=cHRlYQ":                    "invalid_cursor", // a product's, of what is no sku
		"/v1/products?after=VEVBLTAwMQ":                "invalid_cursor", // a sku without its letter
		"/v1/products?after=cFRFQS0wMDE=":              "invalid_cursor", // with padding
		"/v1/products?after=cFRFQS0wMDF":               "invalid_cursor", // with bits that no encoder sets
	} {
		b.refused(path, ask{method: "GET", path: path}, http.StatusBadRequest, code)
	}
	for _, path := range []string{"/v1/orders?limit=100", "/v1/products?after=cFRFQS0wMDE&status=inactive&limit=1"} {
		require.Equal(t, http.StatusInternalServerError, b.send(ask{method: "GET", path: path}).Status, "%s was refused", path)
	}
}

// Ensure a query parameter that the operation does not name, or that comes twice, is named: a filter that is misspelt must
// not list everything.
func TestQueryParametersAreNamed(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, o := range operations() {
		if o.method == http.MethodHead {
			continue
		}
		a := b.refused(o.path, ask{method: o.method, path: o.path + "?staus=open&a%20b=1&a%20b=2", body: o.body, header: o.header},
			http.StatusBadRequest, "validation_failed")
		require.Equal(t, map[string]string{"staus": "unknown", "a b": "unknown"}, fields(t, a))
	}
	a := b.refused("twice", ask{method: "GET", path: "/v1/orders?status=open&limit=x&status=open"}, http.StatusBadRequest, "validation_failed")
	require.Equal(t, map[string]string{"status": "repeated", "limit": "type"}, fields(t, a))
	long := "/v1/orders?" + strings.Repeat("x", 10_000) + "=1"
	require.Less(t, len(b.refused("long", ask{method: "GET", path: long}, http.StatusBadRequest, "validation_failed").Body), 2048)
}

// Ensure a path parameter is decoded exactly once: what is checked is what is used.
func TestPathParametersAreDecodedOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, path := range []string{
		"/v1/products/TEA%252D001", "/v1/products/%2554EA-001", "/v1/products/TEA%2500", "/v1/products/TEA%252F1", "/v1/products/TEA%2F1",
		"/v1/products/%252F%2F", "/v1/products/TEA%25", "/v1/products/TEA+001",
		"/v1/orders/019ae6a0%252D58c0-7b1e-9d3c-3f3a5b1f6c42",
	} {
		b.refused(path, ask{method: "GET", path: path}, http.StatusBadRequest, "validation_failed")
	}
	for _, path := range []string{"/v1/products/TEA%2D001", "/v1/products/%54EA-001", "/v1/orders/019ae6a0%2D58c0-7b1e-9d3c-3f3a5b1f6c42"} {
		require.Equal(t, http.StatusInternalServerError, b.send(ask{method: "GET", path: path}).Status, "%s was refused", path)
	}
}
