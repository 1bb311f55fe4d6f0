package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
)

const twoTeas = `{"currency":"EUR","lines":[{"sku":"TEA-001","quantity":1},{"sku":"TEA-002","quantity":2}],
	"shipping_address":{"name":"Alice Ames","line1":"1 High Street","city":"Berlin","postal_code":"10115","country":"DE"},
	"payment_method":"pm_card_visa"}`

// BenchmarkChecks measures what the boundary does to a request between the scope and the use case: headers, parameters
// and body. Run it with -benchmem before and after a change of any of them.
func BenchmarkChecks(b *testing.B) {
	all, err := loadOperations()
	require.NoError(b, err)
	for _, c := range []struct{ name, operation, path, body string }{
		{"place-order", "POST /v1/orders", "/v1/orders", twoTeas},
		{"list-orders", "GET /v1/orders", "/v1/orders?limit=20&status=open", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			op, ok := all[c.operation]
			require.True(b, ok)
			ctx := context.WithValue(context.Background(), operationKey{}, op)
			ctx = context.WithValue(ctx, chi.RouteCtxKey, chi.NewRouteContext())
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, nil)
			r.Header.Set("Content-Type", mediaJSON)
			r.Header.Set(headerIdempotencyKey, "k1")
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(c.body))
				for _, check := range []step{checkHeaders, checkParameters, strictBody} {
					if r, err = check(nil, r); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
