package httpapi

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// checkParameters validates path and query against the contract. Unknown and repeated query parameters are errors.
// Headers have codes of their own and are validated by checkHeaders.
func checkParameters(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r, invalidField("query")
	}
	var violations domain.Violations
	declared := operationOf(r.Context()).parameters
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case declared.GetByInAndName(openapi3.ParameterInQuery, name) == nil:
			violations.Add(name, "unknown", "is not a parameter of this operation")
		case len(query[name]) > 1:
			violations.Add(name, "repeated", "may be given once")
		}
	}
	for _, p := range declared {
		switch name := p.Value.Name; {
		case p.Value.In == openapi3.ParameterInPath:
			checkParameter(&violations, p.Value, pathParameter(r, name))
		case p.Value.In == openapi3.ParameterInQuery && len(query[name]) == 1:
			checkParameter(&violations, p.Value, query.Get(name))
		}
	}
	return r, violations.Err()
}

func checkParameter(v *domain.Violations, p *openapi3.Parameter, text string) {
	schema := p.Schema.Value
	var value any = text
	if schema.Type.Is(openapi3.TypeInteger) {
		value = number(text)
	}
	collect(v, p.Name, schema.VisitJSON(value, openapi3.MultiErrors()))
}

// A cursor is a letter for the list and the id of the page's last item, encoded so that clients treat it as opaque. A
// cursor of one list is not valid for another.
const (
	orderCursors   = 'o'
	productCursors = 'p'
)

func orderCursor(id domain.OrderID) string { return cursor(orderCursors, id[:]) }

func productCursor(sku string) string { return cursor(productCursors, []byte(sku)) }

func cursor(list byte, item []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{list}, item...))
}

// item returns the item id in a cursor of that list.
func item(list byte, cursor string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) == 0 || raw[0] != list || strings.ContainsAny(cursor, "\r\n") { // base64 ignores line breaks
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
