package httpapi

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// FuzzKey: exactly the keys of the contract's pattern are accepted, in one line.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"", "k", " ", "a b", "é", "~!", strings.Repeat("k", 255), strings.Repeat("k", 256), "\x7f"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	pattern := regexp.MustCompile(`^[!-~]{1,255}$`)
	f.Fuzz(func(t *testing.T, key string, twice bool) {
		lines := []string{key}
		if twice {
			lines = append(lines, key)
		}
		err := checkKey(lines)
		require.Equal(t, pattern.MatchString(key) && !twice, err == nil)
		if err != nil {
			requireRefusal(t, err, http.StatusBadRequest, codeKeyInvalid)
		}
	})
}

// FuzzCursor: a cursor that is accepted is the one that the item has, and is of one list.
func FuzzCursor(f *testing.F) {
	f.Add(orderCursor(domain.OrderID{1, 2, 3}))
	for _, seed := range []string{productCursor("TEA-001"), "", "bw", "cA", "o", "cE1VRy0wMDE", "cE1VRy0wMDE=", "cE1VRy0wMDF", "\xff", "bwAAAAAAAAAAAAAAAAAAAAA", "b00\n00000000000000000000", "cE1VRy0wM\r\nDE"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		order, orderErr := orderAfter(&cursor)
		if orderErr == nil {
			require.Equal(t, cursor, orderCursor(order))
		} else {
			requireRefusal(t, orderErr, http.StatusBadRequest, app.CodeInvalidCursor)
		}
		sku, skuErr := productAfter(&cursor)
		if skuErr == nil {
			require.Equal(t, cursor, productCursor(sku))
		} else {
			requireRefusal(t, skuErr, http.StatusBadRequest, app.CodeInvalidCursor)
		}
		require.False(t, orderErr == nil && skuErr == nil)
	})
}

// FuzzBearerToken: a token that is found stands alone behind the scheme.
func FuzzBearerToken(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer x", "bearer  x", "Bearer x y", "Bearer\tx", "Basic x", "Bearerx", "Bearer x\t", "Bearer é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token, code := bearerToken(http.Header{"Authorization": {value}})
		require.True(t, token == "" || code == "")
		require.Contains(t, []string{"", bearerInvalidRequest}, code)
		if token != "" {
			require.NotContains(t, token, " ")
			scheme, rest, _ := strings.Cut(value, " ")
			require.True(t, strings.EqualFold(scheme, "Bearer"))
			require.Equal(t, strings.TrimLeft(rest, " "), token)
		}
		_, code = bearerToken(http.Header{"Authorization": {value, value}})
		require.Equal(t, bearerInvalidRequest, code)
	})
}

// FuzzMedia: what passes says application/json, and no coding but identity.
func FuzzMedia(f *testing.F) {
	for _, seed := range []string{"", "application/json", "Application/JSON ; charset=utf-8", "application/jsonx", "text/plain", "application/json, x", ";", "application/json;a"} {
		f.Add(seed, "")
		f.Add("application/json", seed)
	}
	f.Fuzz(func(t *testing.T, media, coding string) {
		w := httptest.NewRecorder()
		err := checkMedia(w, &http.Request{Header: http.Header{"Content-Type": {media}, "Content-Encoding": {coding}}})
		if err != nil {
			requireRefusal(t, err, http.StatusUnsupportedMediaType, codeUnsupportedMediaType)
			return
		}
		name, _, _ := strings.Cut(media, ";")
		require.True(t, strings.EqualFold("application/json", strings.TrimSpace(name)), media)
		require.True(t, coding == "" || strings.EqualFold(coding, "identity"), coding)
	})
}

// FuzzParameters: a query that passes names declared parameters, each once and within its bounds.
func FuzzParameters(f *testing.F) {
	all, err := loadOperations()
	require.NoError(f, err)
	for _, seed := range []string{
		"", "limit=1", "limit=100&status=open", "limit=0", "limit=1&limit=1", "limit", "status=x", "after=x", "a=1", "limit=%31", "%ff=1", "limit=1;a=1", "&&", "limit=+1", "%zz",
		"after=" + strings.Repeat("a", 513),
	} {
		f.Add(seed)
	}
	list := all["GET /v1/orders"]
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{URL: &url.URL{RawQuery: raw}}
		_, err := checkParameters(nil, r.WithContext(context.WithValue(t.Context(), operationKey{}, list)))
		if err != nil {
			requireRefusal(t, err, http.StatusBadRequest, domain.CodeValidationFailed)
			return
		}
		query, err := url.ParseQuery(raw)
		require.NoError(t, err)
		for name, values := range query {
			require.Contains(t, []string{"limit", "status", "after"}, name)
			require.Len(t, values, 1)
		}
		if limit, ok := query["limit"]; ok {
			n, err := strconv.Atoi(limit[0])
			require.NoError(t, err)
			require.True(t, n >= 1 && n <= 100)
		}
	})
}

// FuzzInstance: the instance of a problem is a bounded path that can be parsed, whatever was asked for.
func FuzzInstance(f *testing.F) {
	for _, seed := range []string{"/", "//evil.test/x", "/%C3%A9", "*", "/a b", "/" + strings.Repeat("%C3", 1000), "/" + strings.Repeat("é", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		got := instance(&http.Request{URL: u})
		require.LessOrEqual(t, len(got), maxInstance)
		parsed, err := url.Parse(got)
		require.NoError(t, err, got)
		require.Empty(t, parsed.Host+parsed.Scheme, got)
	})
}

// FuzzKeySet: every key that is used is a public one of an allowed algorithm, under an id.
func FuzzKeySet(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"keys":[]}`, `{"keys":[null,7,{},{"kty":"oct","k":"AA","kid":"a"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","kid":"b","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","use":"sig"}]}`,
		`{"keys":[{"kty":"RSA","kid":"c","e":"AQAB","n":"` + strings.Repeat("_", 342) + `"}]}`, `{"keys":{}}`, `{"keys":[{"kid":"\ud800"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reader := &keySetReader{observer: blind{}, log: slog.New(slog.DiscardHandler)}
		set, err := reader.Transform(t.Context(), &http.Response{Body: io.NopCloser(bytes.NewReader(raw))})
		if err != nil {
			require.Nil(t, set)
			return
		}
		for id, keys := range set.keys {
			require.NotEmpty(t, id)
			for _, key := range keys {
				require.NotEmpty(t, key.algorithms)
				require.Subset(t, algorithmsFor(key.public), key.algorithms)
			}
		}
	})
}

// blind is an observer of keys that does not look.
type blind struct{}

func (blind) SigningKeySkipped(context.Context) {}
