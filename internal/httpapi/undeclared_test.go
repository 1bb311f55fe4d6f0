package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

// Ensure a request is refused only with a code that its operation declares: a query that cannot be read is a field that
// is not valid, and a precondition counts only where the operation takes one.
func TestRefusalsAreDeclared(t *testing.T) {
	t.Parallel()
	all, err := loadOperations()
	require.NoError(t, err)
	under := func(operation, target string) context.Context {
		require.Contains(t, all, operation)
		return context.WithValue(httptest.NewRequest(http.MethodGet, target, nil).Context(), operationKey{}, all[operation])
	}

	list := httptest.NewRequest(http.MethodGet, "/v1/orders?%zz", nil)
	_, err = checkParameters(nil, list.WithContext(under("GET /v1/orders", "/v1/orders")))
	var refused *domain.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, domain.CodeValidationFailed, refused.Code)

	list.Header.Set("If-None-Match", "no tag")
	_, err = checkHeaders(nil, list.WithContext(under("PUT /v1/orders/{order_id}/shipping-address", "/v1/orders")))
	require.ErrorIs(t, err, errPreconditionRequired, "it takes no If-None-Match, so a malformed one is not looked at")
	require.NotErrorIs(t, err, errInvalidPrecondition)
	list.Header.Set("If-None-Match", "no tag")
	_, err = checkHeaders(nil, list.WithContext(under("GET /v1/orders/{order_id}", "/v1/orders")))
	require.ErrorIs(t, err, errInvalidPrecondition)
}
