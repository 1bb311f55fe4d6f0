package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a body that is not one strict JSON value is refused before anything is done with it.
func TestBodiesAreStrictJSON(t *testing.T) {
	t.Parallel()
	b := start(t)
	order := testkit.OrderBody("pm_card_visa", "TEA-001", "1")
	inAddress := func(member string) string { return strings.Replace(order, `"city":"Berlin"`, member, 1) }
	for _, c := range []struct{ name, body, code string }{
		{"white space alone", " \n", "malformed_request"},
		{"cut short", order[:len(order)-1], "malformed_request"},
		{"not JSON", "currency=EUR", "malformed_request"},
		{"a byte order mark", "\ufeff" + order, "malformed_request"},
		{"a comment", "/* hello */" + order, "malformed_request"},
		{"single quotes", strings.ReplaceAll(order, `"`, `'`), "malformed_request"},
		{"a trailing comma", strings.Replace(order, `"pm_card_visa"}`, `"pm_card_visa",}`, 1), "malformed_request"},
		{"trailing data", order + "x", "malformed_request"},
		{"a second value", order + order, "malformed_request"},
		{"a second value on its line", order + "\n{}", "malformed_request"},
		{"a closing bracket too many", order + "}", "malformed_request"},
		{"a duplicate member", strings.Replace(order, `{"currency":"EUR"`, `{"currency":"EUR","currency":"EUR"`, 1), "malformed_request"},
		{"a duplicate member by an escape", strings.Replace(order, `{"currency":"EUR"`, `{"currency":"EUR","c\u0075rrency":"USD"`, 1), "malformed_request"},
		{"a duplicate member within", inAddress(`"city":"Berlin","city":"Bonn"`), "malformed_request"},
		{"a duplicate member in a list", strings.Replace(order, `"quantity":1`, `"quantity":1,"quantity":2`, 1), "malformed_request"},
		{"a duplicate unknown member", inAddress(`"city":"Berlin","x":1,"x":1`), "malformed_request"},
		{"invalid UTF-8", inAddress("\"city\":\"B\xffrlin\""), "malformed_request"},
		{"invalid UTF-8 in a name", inAddress("\"city\":\"Berlin\",\"\xff\":1"), "malformed_request"},
		{"an overlong encoding", inAddress("\"city\":\"B\xc0\xafrlin\""), "malformed_request"},
		{"a lone surrogate", inAddress(`"city":"\ud800"`), "malformed_request"},
		{"surrogates the wrong way round", inAddress(`"city":"\udc00\ud800"`), "malformed_request"},
		{"a surrogate as UTF-8", inAddress("\"city\":\"\xed\xa0\x80\""), "malformed_request"},
		{"a null character", inAddress(`"city":"Ber\u0000lin"`), "malformed_request"},
		{"a null character in a name", inAddress(`"city":"Berlin","\u0000":1`), "malformed_request"},
		{"a raw control character", inAddress("\"city\":\"Ber\x01lin\""), "malformed_request"},
		{"an escaped control character", inAddress(`"city":"Ber\u0001lin"`), "validation_failed"},
		{"an unknown escape", inAddress(`"city":"\x41"`), "malformed_request"},
		{"very deep", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "malformed_request"},
		{"deep", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "validation_failed"},
		{"deep in a member", inAddress(`"city":` + strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000)), "validation_failed"},
		{"a fraction of nothing", strings.Replace(order, `"quantity":1`, `"quantity":1.0`, 1), "validation_failed"},
		{"a number for a text", inAddress(`"city":1`), "validation_failed"},
		{"a fraction for a text", inAddress(`"city":1.5`), "validation_failed"},
		{"an unknown member", inAddress(`"city":"Berlin","planet":"Earth"`), "validation_failed"},
		{"a name in another case", strings.Replace(order, `"currency"`, `"Currency"`, 1), "validation_failed"},
		{"a name in another case beside", strings.Replace(order, `{"currency"`, `{"CURRENCY":"USD","currency"`, 1), "validation_failed"},
		{"a name with a letter that folds", strings.Replace(order, `"sku"`, `"\u017fku"`, 1), "validation_failed"}, // ſ folds to s
		{"null", "null", "validation_failed"},
		{"null for a member", inAddress(`"city":null`), "validation_failed"},
		{"null for an optional member", inAddress(`"city":"Berlin","line2":null`), "validation_failed"},
		{"a list", "[" + order + "]", "validation_failed"},
		{"a string", `"order"`, "validation_failed"},
		{"a number", "1", "validation_failed"},
		{"nothing in it", "{}", "validation_failed"},
	} {
		a := ask{method: "POST", path: "/v1/orders", body: c.body, header: keyed()}
		b.refused(c.name, a, http.StatusBadRequest, c.code)
	}
	empty := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Type": {"application/json"}}
	b.refused("empty", ask{method: "POST", path: "/v1/orders", header: empty}, http.StatusBadRequest, "malformed_request")
	require.NotContains(t, b.log.String(), "panic", "a refused body got through to the use cases")
}

// Ensure a number is the whole number that was meant, or refused: never rounded, cut or wrapped.
func TestNumbersAreWholeAndInRange(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, number := range []string{
		"1e999", "-1e999", "2.5", "1e-1", "0.1", "1.0", "1e0", "10e-1", "0", "-1", "-0", "10001", "9223372036854775807",
		"9223372036854775808", "18446744073709551617", "1e30", `"1"`, "true", "null", "[1]", "{}",
		"10000.00000000000000000000000000000000001", "0.99999999999999999999999999",
	} {
		body := testkit.OrderBody("pm_card_visa", "TEA-001", number)
		b.refused("quantity "+number, ask{method: "POST", path: "/v1/orders", body: body, header: keyed()},
			http.StatusBadRequest, "validation_failed")
	}
	for _, number := range []string{"+1", "01", ".5", "1.", "0x1", "NaN", "Infinity", "1_000", "--1"} {
		body := testkit.OrderBody("pm_card_visa", "TEA-001", number)
		b.refused("quantity "+number, ask{method: "POST", path: "/v1/orders", body: body, header: keyed()},
			http.StatusBadRequest, "malformed_request")
	}
	for _, amount := range []string{"0", "-1", "1.5", "9223372036854775808", "1e19", "-9223372036854775809", "1e999"} {
		a := b.refused("amount "+amount, ask{
			method: "POST", path: anOrder + "/refunds", body: `{"amount":{"amount":` + amount + `,"currency":"EUR"}}`, header: keyed(),
		}, http.StatusBadRequest, "validation_failed")
		require.Contains(t, fields(t, a), "amount/amount", amount)
	}
	for _, delta := range []string{"1000001", "-1000001", "9223372036854775808", "-9223372036854775809", "0.5"} {
		a := b.refused("delta "+delta, ask{
			method: "POST", path: "/v1/products/TEA-001/stock-adjustments", body: `{"delta":` + delta + `}`, header: keyed(),
		}, http.StatusBadRequest, "validation_failed")
		require.Contains(t, fields(t, a), "delta", delta)
	}
}

// Ensure only application/json is read, whatever its parameters.
func TestBodiesAreJSONByName(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, media := range []string{
		"", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"application/problem+json", "application/merge-patch+json", "application/jsonx", "application", "application/json;;=",
		"*/*", "application/json, text/plain", "application/ json",
	} {
		header := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Type": {media}}
		if media == "" {
			header["Content-Type"] = nil
		}
		b.refused(media, ask{method: "POST", path: "/v1/orders", body: "{}", header: header},
			http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	two := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Type": {"application/json", "application/json"}}
	b.refused("two lines", ask{method: "POST", path: "/v1/orders", body: "{}", header: two}, http.StatusUnsupportedMediaType, "unsupported_media_type")
	for _, media := range []string{
		"application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8", "application/json; x=y",
	} {
		header := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Type": {media}}
		b.refused(media, ask{method: "POST", path: "/v1/orders", body: "{}", header: header}, http.StatusBadRequest, "validation_failed")
	}
}

// Ensure a body that is compressed, or said to be, is refused before it is read, and that the answer says what is taken.
func TestBodiesAreNotEncoded(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, codings := range [][]string{{"gzip"}, {"br"}, {"identity, gzip"}, {"identity", "gzip"}, {"deflate"}, {"x"}} {
		header := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Encoding": codings}
		for _, body := range []string{"{}", "\x1f\x8b", strings.Repeat("x", 100_000)} {
			a := b.refused(codings[0], ask{method: "POST", path: "/v1/orders", body: body, header: header},
				http.StatusUnsupportedMediaType, "unsupported_media_type")
			require.Equal(t, "identity", a.Header.Get("Accept-Encoding"))
		}
	}
	for _, codings := range [][]string{{"identity"}, {"Identity"}, {""}} {
		header := map[string][]string{"Idempotency-Key": {"k1"}, "Content-Encoding": codings}
		b.refused(codings[0], ask{method: "POST", path: "/v1/orders", body: "{}", header: header}, http.StatusBadRequest, "validation_failed")
	}
}

// Ensure a body may be 64 KiB and not one byte more, whether it tells its length or not.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	b := start(t)
	exactly := "{" + strings.Repeat(" ", 64<<10-2) + "}"
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"exactly":        {exactly, http.StatusBadRequest, "validation_failed"},
		"one more":       {exactly + " ", http.StatusRequestEntityTooLarge, "body_too_large"},
		"one more first": {" " + exactly, http.StatusRequestEntityTooLarge, "body_too_large"},
		"a megabyte":     {strings.Repeat("[", 1<<20), http.StatusRequestEntityTooLarge, "body_too_large"},
	} {
		b.refused(name, ask{method: "POST", path: "/v1/orders", body: c.body, header: keyed()}, c.status, c.code)
		unknown := io.MultiReader(strings.NewReader(c.body)) // the client cannot tell its length, so it sends chunks
		b.refused(name+", in chunks", ask{method: "POST", path: "/v1/orders", reader: unknown, header: keyed()}, c.status, c.code)
	}
}

// Ensure every invalid field is named by its path, with a code of ours, and that what a caller makes long is cut.
func TestInvalidFieldsAreNamed(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.refused("many", ask{method: "POST", path: "/v1/orders", header: keyed(), body: `{"currency":"eur",
		"lines":[{"sku":"TEA-001","quantity":0},{"sku":"tea"},{"sku":1,"quantity":10001}],
		"shipping_address":{"name":"` + strings.Repeat("x", 201) + `","line1":" ","line2":"a\tb","city":"` + strings.Repeat("x", 101) + `","postal_code":"1","country":"D1"}}`,
	}, http.StatusBadRequest, "validation_failed")
	require.Equal(t, map[string]string{
		"currency": "pattern", "lines/0/quantity": "range", "lines/1/sku": "pattern", "lines/1/quantity": "required",
		"lines/2/sku": "type", "lines/2/quantity": "range", "payment_method": "required",
		"shipping_address/name": "length", "shipping_address/line1": "pattern", "shipping_address/line2": "pattern",
		"shipping_address/city": "length", "shipping_address/country": "pattern",
	}, fields(t, a))

	for body, want := range map[string]map[string]string{
		`{"lines":[{"sku":"A","quantity":1},{"sku":"B","quantity":1.0}]}`:                    {"lines/1/quantity": "type"},
		`{"lines":[{"sku":"A","quantity":1e0}]}`:                                             {"lines/0/quantity": "type"},
		`{"lines":[{"sku":"A","quantity":9223372036854775808}]}`:                             {"lines/0/quantity": "range"},
		`{"lines":[{"sku":"A","quantity":1},{"quantity":1,"sku":"B","colour":"red"}]}`:       {"lines/1/colour": "unknown"},
		`{"lines":[{"sku":"A","quantity":1}],"coupon":"X","a/b~c":1}`:                        {"coupon": "unknown", "a~1b~0c": "unknown"},
		`{"lines":[{"sku":"A","quantity":1}],"":1}`:                                          {"": "unknown"},
		`{"lines":[{"sku":"A","quantity":1}],"shipping_address":{"city":true,"planet":"M"}}`: {"shipping_address/city": "type", "shipping_address/planet": "unknown"},
		`[]`: {"": "type"},
	} {
		a := b.refused(body, ask{method: "POST", path: "/v1/orders", body: body, header: keyed()}, http.StatusBadRequest, "validation_failed")
		got := fields(t, a)
		for field, code := range want {
			require.Equal(t, code, got[field], "%s: %s in %v", body, field, got)
		}
		for field := range got {
			require.True(t, want[field] != "" || got[field] == "required", "%s: %s", body, field)
		}
	}

	long := `{"` + strings.Repeat("é", 30_000) + `":1}`
	a = b.refused("a long name", ask{method: "POST", path: "/v1/orders", header: keyed(), body: long}, http.StatusBadRequest, "validation_failed")
	require.Less(t, len(a.Body), 4096)
	var members []string
	for i := range 6_000 {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	a = b.refused("many members", ask{method: "POST", path: "/v1/orders", header: keyed(), body: "{" + strings.Join(members, ",") + "}"},
		http.StatusBadRequest, "validation_failed")
	require.Len(t, fields(t, a), 100)
	many := `{"lines":[` + strings.TrimSuffix(strings.Repeat(`{},`, 20_000), ",") + `]}`
	a = b.refused("many lines", ask{method: "POST", path: "/v1/orders", header: keyed(), body: many}, http.StatusBadRequest, "validation_failed")
	require.Less(t, len(a.Body), 64<<10)
	b.refused("a long path", ask{method: "GET", path: "/v1/" + strings.Repeat("x%20", 5_000)}, http.StatusNotFound, "route_not_found")
}
