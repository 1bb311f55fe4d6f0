package hostile

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"example.com/orders/api"
	"example.com/orders/internal/dev/testkit"
)

// operation is what the driver knows of an operation: what the contract says, and the tokens to call it with.
type operation struct {
	id, method, path string
	parameters       openapi3.Parameters
	scope            string
	signed           bool            // a signature takes the place of the token
	keyed            bool            // Idempotency-Key is required
	versioned        bool            // the caller sends a version
	takes            map[string]bool // the preconditions that it takes
	tagged           string          // the path of the read whose tag is the version
	body             *openapi3.Schema
	required         bool // a body is
	example          any
	mostBody         int // in bytes
	media            string

	token, narrow, expired string // with every scope; with all but the operation's; no longer valid
}

func (op *operation) safe() bool { return op.method == "GET" }

// everyScope is every scope that the contract names.
const everyScope = testkit.AllScopes + " orders:admin"

// operations reads the contract. What is added to it is attacked without a word here.
func operations(t *testing.T) (all []*operation, doc *openapi3.T) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			all = append(all, newOperation(doc, path, method, item, item.Operations()[method]))
		}
	}
	return all, doc
}

func newOperation(doc *openapi3.T, path, method string, item *openapi3.PathItem, o *openapi3.Operation) *operation {
	op := &operation{
		id: o.OperationID, method: method, path: path, parameters: slices.Concat(item.Parameters, o.Parameters), takes: map[string]bool{},
		versioned: o.Extensions["x-caller-version"] != "none", tagged: taggedRead(doc, path), media: "application/json",
	}
	for _, scopes := range (*o.Security)[0] {
		op.scope = strings.Join(scopes, " ")
	}
	op.signed = op.scope == ""
	for _, name := range []string{headerKey, headerIfMatch, headerIfNoneMatch} {
		op.takes[name] = op.parameters.GetByInAndName(openapi3.ParameterInHeader, name) != nil
	}
	op.keyed = op.takes[headerKey]
	if o.RequestBody != nil {
		content := o.RequestBody.Value.Content[op.media]
		op.body, op.required, op.mostBody = content.Schema.Value, o.RequestBody.Value.Required, mostBody(o.RequestBody.Value.Description)
		first := slices.Sorted(maps.Keys(content.Examples))[0]
		op.example = ordered(content.Examples[first].Value.Value)
	}
	return op
}

var kibibytes = regexp.MustCompile(`at most (\d+) KiB`)

// mostBody is how large a body may be: 64 KiB, unless its description says otherwise.
func mostBody(description string) int {
	if said := kibibytes.FindStringSubmatch(description); said != nil {
		n, _ := strconv.Atoi(said[1])
		return n << 10
	}
	return 64 << 10
}

// taggedRead is the path of the resource that a path is below and whose read answers with a tag.
func taggedRead(doc *openapi3.T, path string) string {
	for at := path; at != ""; at = at[:strings.LastIndex(at, "/")] {
		item := doc.Paths.Value(at)
		if item == nil || item.Get == nil {
			continue
		}
		if ok := item.Get.Responses.Status(200); ok != nil && ok.Value.Headers["ETag"] != nil {
			return at
		}
	}
	return ""
}

// mint gives every operation its tokens.
func (w *world) mint(actor string) {
	w.t.Helper()
	token := func(scopes string, life time.Duration) string {
		text, err := w.Sandbox.Token(actor, "default", scopes, life)
		require.NoError(w.t, err)
		return text
	}
	full, expired := token(everyScope, 24*time.Hour), token(everyScope, -time.Hour)
	for _, op := range w.operations {
		others := slices.DeleteFunc(strings.Fields(everyScope), func(s string) bool { return s == op.scope })
		op.token, op.expired, op.narrow = full, expired, token(strings.Join(others, " "), 24*time.Hour)
	}
}
