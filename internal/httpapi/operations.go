package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"

	"example.com/orders/api"
)

// operation is the part of an operation's contract that this package enforces. It is read from the contract at start.
type operation struct {
	id         string
	scope      string
	signed     bool // a signature over the body takes the place of token and scope
	safe       bool // a GET
	keyed      bool // Idempotency-Key is required
	versioned  bool // If-Match is required
	parameters openapi3.Parameters
	body       *openapi3.Schema // nil: no body is read
	bodiless   bool             // the body may be left out
}

// operations finds an operation by its method and path template.
type operations map[string]operation

func loadOperations() (operations, error) {
	contract, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, err
	}
	all := operations{}
	for template, item := range contract.Paths.Map() {
		for method, o := range item.Operations() {
			op, err := newOperation(o, item.Parameters)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, template, err)
			}
			op.safe = method == http.MethodGet
			all[method+" "+template] = op
		}
	}
	return all, nil
}

func newOperation(o *openapi3.Operation, shared openapi3.Parameters) (operation, error) {
	op := operation{id: o.OperationID, parameters: slices.Concat(shared, o.Parameters)}
	if o.Security == nil || len(*o.Security) != 1 {
		return op, fmt.Errorf("operation %s: must have exactly one security requirement", o.OperationID)
	}
	for scheme, scopes := range (*o.Security)[0] {
		if op.signed = scheme == schemeSignature; op.signed {
			break
		}
		if len(scopes) != 1 {
			return op, fmt.Errorf("operation %s: must have exactly one scope", o.OperationID)
		}
		op.scope = scopes[0]
	}
	for _, p := range o.Parameters {
		op.keyed = op.keyed || p.Value.Required && p.Value.Name == headerIdempotencyKey
		op.versioned = op.versioned || p.Value.Required && p.Value.Name == headerIfMatch
	}
	if o.RequestBody != nil {
		op.body = o.RequestBody.Value.Content.Get(mediaJSON).Schema.Value
		op.bodiless = !o.RequestBody.Value.Required
	}
	return op, nil
}

type operationKey struct{}

// find puts the operation of the matched route into the request's context. HEAD uses the operation of GET.
func (all operations) find(_ http.ResponseWriter, r *http.Request) (*http.Request, error) {
	route := chi.RouteContext(r.Context())
	op, ok := all[route.RouteMethod+" "+route.RoutePattern()]
	if !ok {
		return r, errRouteNotFound
	}
	recordOf(r.Context()).operation = op.id
	return r.WithContext(context.WithValue(r.Context(), operationKey{}, op)), nil
}

func operationOf(ctx context.Context) operation {
	op, _ := ctx.Value(operationKey{}).(operation)
	return op
}

// routeIdentity is the method, the path template and the path parameters of the matched route: what the fingerprint
// covers beside the input.
func routeIdentity(method, template string, parameters ...string) string {
	return strings.Join(append([]string{method, template}, parameters...), " ")
}
