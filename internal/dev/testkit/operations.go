package testkit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// Operation is one operation of the contract, with a request that the contract itself shows.
type Operation struct {
	ID        string // of a HEAD too; it has a name of its own
	UseCase   string // the ID, or for a HEAD that of its GET
	Method    string
	Path      string // with its parameters in braces
	Body      string // the first example; empty: there is no body
	Keyed     bool   // whether Idempotency-Key is required
	Versioned bool   // whether the caller sends a version
}

// Operations reads the contract's operations, sorted by their IDs.
func Operations(t testing.TB) []Operation {
	t.Helper()
	doc, err := contract()
	require.NoError(t, err)
	var all []Operation
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			version, _ := o.Extensions["x-caller-version"].(string)
			op := Operation{
				ID: o.OperationID, UseCase: o.OperationID, Method: method, Path: path, Body: exampleBody(t, o),
				Keyed:     o.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key") != nil,
				Versioned: strings.HasPrefix(version, "if-match"),
			}
			if name, ok := o.Extensions["x-use-case"].(string); ok {
				op.UseCase = name
			}
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func exampleBody(t testing.TB, o *openapi3.Operation) string {
	t.Helper()
	if o.RequestBody == nil {
		return ""
	}
	examples := o.RequestBody.Value.Content.Get("application/json").Examples
	require.NotEmpty(t, examples, "%s shows no request", o.OperationID)
	first := slices.Sorted(maps.Keys(examples))[0]
	body, err := json.Marshal(examples[first].Value.Value)
	require.NoError(t, err)
	return string(body)
}
