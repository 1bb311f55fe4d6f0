package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

// requireRefusal checks that an error is one of those codes, and is answered with that status.
func requireRefusal(t *testing.T, err error, status int, codes ...domain.Code) {
	t.Helper()
	refusal := classify(err)
	require.Contains(t, codes, refusal.Code)
	require.Equal(t, status, newProblems(nil).types[refusal.Code].status)
}

// FuzzDecodeStrictly: what is accepted is one JSON value in valid UTF-8 that encoding/json reads in the same way, and reads
// back the same.
func FuzzDecodeStrictly(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", "7", "-0", "1.5", "1e400", "9223372036854775808", `"\ud83d\ude00"`, `"\ud83d"`, `"\u0000"`, `{"a":1,"a":2}`,
		`{"a":1,"\u0061":2}`, `{"a":[{"b":null}]} `, "{}{}", "\xef\xbb\xbf{}", "\"\xff\"", strings.Repeat("[", 100), "{\"a\":\"\u2028\"}", "tru", "01", "[1,]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := decodeStrictly(raw)
		if err != nil {
			requireRefusal(t, err, http.StatusBadRequest, codeMalformed)
			return
		}
		require.True(t, json.Valid(raw) && utf8.Valid(raw))
		var lax any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&lax))
		require.Equal(t, strictly(t, lax), value)
		text, err := json.Marshal(value)
		require.NoError(t, err)
		again, err := decodeStrictly(text)
		require.NoError(t, err)
		if !bytes.ContainsAny(text, "e.E") { // a number that is no int64 is not kept
			require.Equal(t, value, again)
		}
	})
}

// strictly turns what encoding/json has read into what decodeStrictly makes of it.
func strictly(t *testing.T, v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case string:
		require.NotContains(t, v, "\x00")
	case []any:
		for i := range v {
			v[i] = strictly(t, v[i])
		}
	case map[string]any:
		for name := range v {
			require.NotContains(t, name, "\x00")
			v[name] = strictly(t, v[name])
		}
	}
	return v
}

// FuzzNumber: a number is what strconv reads, or one that no integer schema takes.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1", "+1", "01", "1.0", "1e2", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := number(text).(int64); ok {
			want, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			require.Equal(t, want, n)
			return
		}
		x, ok := number(text).(float64)
		require.True(t, ok)
		require.True(t, x != math.Trunc(x) || math.Abs(x) > math.MaxInt64, "%q is taken for %v", text, x)
	})
}

// FuzzBody: a body that an operation accepts is read by the generated code without an error. A refusal names a field or the
// text, and is a 400.
func FuzzBody(f *testing.F) {
	all, err := loadOperations()
	require.NoError(f, err)
	bodies := map[string]func() any{ // by operation, what the generated code decodes into
		"POST /v1/orders": func() any { return &openapi.PlaceOrderRequest{} },
		"PUT /v1/orders/{order_id}/shipping-address": func() any { return &openapi.Address{} },
		"POST /v1/orders/{order_id}/cancellation":    func() any { return &openapi.CancelOrderRequest{} },
		"POST /v1/orders/{order_id}/shipment":        func() any { return &openapi.ShipOrderRequest{} },
		"POST /v1/orders/{order_id}/refunds":         func() any { return &openapi.RefundOrderRequest{} },
		"PUT /v1/products/{sku}":                     func() any { return &openapi.PutProductRequest{} },
		"POST /v1/products/{sku}/stock-adjustments":  func() any { return &openapi.AdjustStockRequest{} },
	}
	for _, seed := range []string{
		`{}`, `{"reason":""}`, `{"delta":-3,"reason":"x"}`, `{"carrier":"DHL","tracking_number":"1"}`, `{"amount":{"amount":1,"currency":"EUR"}}`,
		`{"name":"Tea","price":{"amount":1,"currency":"EUR"},"active":true}`, `{"name":"A","line1":"B","city":"C","postal_code":"D","country":"DE","line2":""}`,
		`{"currency":"EUR","lines":[{"sku":"A","quantity":1}],"shipping_address":{"name":"A","line1":"B","city":"C","postal_code":"D","country":"DE"},"payment_method":"p"}`,
	} {
		for route := range bodies {
			f.Add(route, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, route string, raw []byte) {
		target := bodies[route]
		if target == nil {
			return
		}
		value, err := decodeStrictly(raw)
		if err == nil {
			err = matchSchema(all[route].body, value)
		}
		if err != nil {
			requireRefusal(t, err, http.StatusBadRequest, codeMalformed, domain.CodeValidationFailed)
			return
		}
		require.NoError(t, json.Unmarshal(raw, target()))
	})
}
