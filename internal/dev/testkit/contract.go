package testkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"example.com/orders/api"
)

// contract is api/openapi.yaml, read once for all tests.
var contract = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(api.OpenAPI) })

// Checked is a transport that holds every answer to the contract: a status that the operation declares, with its
// headers and a body of its schema; every error a problem with a declared code; and nothing of the inside in any.
func Checked(t testing.TB, next http.RoundTripper) http.RoundTripper { return checked{t, next} }

type checked struct {
	t    testing.TB
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. An answer that was cut short is passed on as it is.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := c.next.RoundTrip(r)
	noteExchange(c.t.Name(), r, began)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	if err == nil {
		if broken := CheckContract(r, response.StatusCode, response.Header, body); broken != nil {
			c.t.Errorf("%s %s answered %d against the contract: %v\n%s", r.Method, r.URL, response.StatusCode, broken, body)
		}
	}
	return response, nil
}

// failing ends a body with the error that ended it.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// CheckContract checks one answer against api/openapi.yaml.
func CheckContract(r *http.Request, status int, header http.Header, body []byte) error {
	doc, err := contract()
	if err != nil {
		return err
	}
	declared, err := declaredFor(doc, r, status)
	if err != nil {
		return err
	}
	shown := *declared
	if r.Method == http.MethodHead { // the media type of its GET, without a body
		shown.Content = nil
	}
	return errors.Join(
		matches(r.Context(), doc, &shown, header, body),
		checkNames(declared, header),
		checkBody(r, declared, header, body),
		checkProblem(r, declared, status, header, body),
	)
}

// declaredFor is what the contract declares for the answer: the operation's own, or, for a request that no operation
// takes, the router's.
func declaredFor(doc *openapi3.T, r *http.Request, status int) (*openapi3.Response, error) {
	item := pathItem(doc, cmp.Or(r.URL.RawPath, r.URL.EscapedPath())) // as it is routed
	if item == nil {
		return ofRouter(doc, "route_not_found", status, http.StatusNotFound)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	operation := item.Operations()[method]
	if operation == nil {
		return ofRouter(doc, "method_not_allowed", status, http.StatusMethodNotAllowed)
	}
	declared := operation.Responses.Status(status)
	if declared == nil {
		return nil, fmt.Errorf("%s does not declare the status", operation.OperationID)
	}
	return declared.Value, nil
}

// ofRouter is the router's own answer to a request that no operation takes, as the contract describes it in words.
func ofRouter(doc *openapi3.T, code string, status, want int) (*openapi3.Response, error) {
	if status != want {
		return nil, fmt.Errorf("no operation takes this request, so it must answer %d", want)
	}
	headers := openapi3.Headers{"Request-Id": doc.Components.Headers["RequestID"], "Cache-Control": doc.Components.Headers["NoStore"]}
	if want == http.StatusMethodNotAllowed {
		headers["Allow"] = &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: openapi3.Parameter{
			Required: true, Schema: openapi3.NewStringSchema().NewRef(),
		}}}
	}
	return &openapi3.Response{
		Headers:    headers,
		Extensions: map[string]any{"x-problem-codes": []any{code}},
		Content:    openapi3.Content{problemType: openapi3.NewMediaType().WithSchemaRef(doc.Components.Schemas["Problem"])},
	}, nil
}

// pathItem finds the template that an escaped path fits.
func pathItem(doc *openapi3.T, path string) *openapi3.PathItem {
	for template, item := range doc.Paths.Map() {
		if slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), fits) {
			return item
		}
	}
	return nil
}

// fits tells whether one segment of a path fits that of a template: a parameter stands for anything but nothing.
func fits(template, segment string) bool {
	return template == segment || strings.HasPrefix(template, "{") && segment != ""
}

// matches checks headers and body against one declared response. The library skips HEAD and 304; so it is shown every
// answer as that of a GET that declares 200 alone.
func matches(ctx context.Context, doc *openapi3.T, declared *openapi3.Response, header http.Header, body []byte) error {
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	operation := &openapi3.Operation{Responses: openapi3.NewResponses(
		openapi3.WithStatus(http.StatusOK, &openapi3.ResponseRef{Value: declared}),
	)}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: get, Route: &routers.Route{Spec: doc, Operation: operation},
		},
		Status: http.StatusOK, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	return openapi3filter.ValidateResponse(ctx, input.SetBodyBytes(body))
}

// checkNames asks that every header is declared, but for those that describe the message as such.
func checkNames(declared *openapi3.Response, header http.Header) error {
	known := []string{"Connection", "Content-Length", "Content-Type", "Date"}
	for name := range declared.Headers {
		known = append(known, http.CanonicalHeaderKey(name))
	}
	for name := range header {
		if !slices.Contains(known, name) {
			return fmt.Errorf("header %s is not declared", name)
		}
	}
	return nil
}

// checkBody asks for a body exactly where one is declared, and for its media type also where a HEAD leaves it out.
func checkBody(r *http.Request, declared *openapi3.Response, header http.Header, body []byte) error {
	if len(body) > 0 && (len(declared.Content) == 0 || r.Method == http.MethodHead) {
		return errors.New("a body that is not declared")
	}
	if media := header.Get("Content-Type"); len(declared.Content) > 0 && declared.Content[media] == nil {
		return fmt.Errorf("media type %q is not declared", media)
	}
	return nil
}
