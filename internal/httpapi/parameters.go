package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// checkParameters checks the path and the query against the contract. The headers that the contract names have codes
// of their own and are checked by checkHeaders.
func checkParameters(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	var violations domain.Violations
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r, invalidField("query")
	}
	input := &openapi3filter.RequestValidationInput{Request: r, PathParams: pathParameters(r), QueryParams: query}
	for _, p := range operationOf(r.Context()).parameters {
		if p.Value.In == openapi3.ParameterInHeader {
			continue
		}
		if err := openapi3filter.ValidateParameter(r.Context(), input, p.Value); err != nil {
			collect(&violations, p.Value.Name, err)
		}
	}
	return r, violations.Err()
}

func pathParameters(r *http.Request) map[string]string {
	parameters := chi.RouteContext(r.Context()).URLParams
	values := make(map[string]string, len(parameters.Keys))
	for i, key := range parameters.Keys {
		value, err := url.PathUnescape(parameters.Values[i])
		if err != nil {
			value = parameters.Values[i]
		}
		values[key] = value
	}
	return values
}

// A cursor is the id of the last item of a page behind a letter for its list, encoded so that nobody is tempted to make
// one up. A cursor of one list is none of another.
const (
	orderCursors   = 'o'
	productCursors = 'p'
)

func orderCursor(id domain.OrderID) string { return cursor(orderCursors, id[:]) }

func productCursor(sku string) string { return cursor(productCursors, []byte(sku)) }

func cursor(list byte, item []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{list}, item...))
}

// item is what a cursor of that list names.
func item(list byte, cursor string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) == 0 || raw[0] != list {
		return nil, app.ErrInvalidCursor
	}
	return raw[1:], nil
}

func orderAfter(cursor *string) (domain.OrderID, error) {
	if cursor == nil {
		return uuid.Nil, nil
	}
	raw, err := item(orderCursors, *cursor)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.FromBytes(raw)
	if err != nil || id == uuid.Nil {
		return uuid.Nil, app.ErrInvalidCursor
	}
	return id, nil
}

func productAfter(cursor *string) (string, error) {
	if cursor == nil {
		return "", nil
	}
	raw, err := item(productCursors, *cursor)
	if err != nil || !domain.ValidSKU(string(raw)) {
		return "", app.ErrInvalidCursor
	}
	return string(raw), nil
}
