package docs_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// scopeNone is the scope of an operation that takes a signature instead of a token.
const scopeNone = "none"

// contract is one operation as api/openapi.yaml states it.
type contract struct {
	route         string // method and path template
	scope         string // none: a signature takes its place
	mode          string
	callerVersion string
	mayTouch      string
	outcomes      map[outcome]bool
	headers       map[int][]string // those of each accepted status
}

func loadContract(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(root + "/api/openapi.yaml")
	require.NoError(t, err)
	return doc
}

// contracts reads the contract by operationId.
func contracts(t testing.TB) map[string]contract {
	t.Helper()
	all := map[string]contract{}
	for path, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			c := contract{route: method + " " + path, outcomes: map[outcome]bool{}, headers: map[int][]string{}}
			c.scope = scopeNone
			if scopes := (*op.Security)[0]["oauth2"]; len(scopes) > 0 {
				c.scope = scopes[0]
			}
			c.mode, _ = op.Extensions["x-idempotency"].(map[string]any)["mode"].(string)
			c.callerVersion, _ = op.Extensions["x-caller-version"].(string)
			c.mayTouch, _ = op.Extensions["x-may-touch"].(string)
			for text, ref := range op.Responses.Map() {
				c.addResponse(t, text, ref.Value)
			}
			all[op.OperationID] = c
		}
	}
	return all
}

func (c contract) addResponse(t testing.TB, text string, r *openapi3.Response) {
	t.Helper()
	status, err := strconv.Atoi(text)
	require.NoError(t, err)
	codes, _ := r.Extensions["x-problem-codes"].([]any)
	for _, code := range codes {
		c.outcomes[outcome{status, code.(string)}] = true
	}
	if len(codes) == 0 {
		c.outcomes[outcome{status, ""}] = true
	}
	if strings.HasPrefix(text, "2") {
		c.headers[status] = []string{}
		for name := range r.Headers {
			c.headers[status] = append(c.headers[status], name)
		}
		if len(r.Content) > 0 {
			c.headers[status] = append(c.headers[status], "Content-Type")
		}
	}
}
