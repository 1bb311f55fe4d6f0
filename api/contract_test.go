// Package api_test checks the conventions of the contract: what every operation, also a new one, must declare.
package api_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/orders/api"
)

// operation is one operation of the contract with the extensions that the rules speak of.
type operation struct {
	*openapi3.Operation
	path, method        string
	mode, callerVersion string
}

func (o operation) keyed() bool     { return o.mode == "key" }
func (o operation) signed() bool    { return o.mode == "event" } // a signature takes the place of token and scope
func (o operation) versioned() bool { return o.callerVersion != "none" }

// header returns the declared request header, or nil.
func (o operation) header(name string) *openapi3.Parameter {
	return o.Parameters.GetByInAndName(openapi3.ParameterInHeader, name)
}

// response returns the declared response, or nil.
func (o operation) response(status string) *openapi3.Response {
	if ref := o.Responses.Value(status); ref != nil {
		return ref.Value
	}
	return nil
}

func (o operation) accepted() map[string]*openapi3.Response {
	accepted := map[string]*openapi3.Response{}
	for status, ref := range o.Responses.Map() {
		if strings.HasPrefix(status, "2") {
			accepted[status] = ref.Value
		}
	}
	return accepted
}

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func eachOperation(t *testing.T, check func(t *testing.T, o operation)) {
	t.Helper()
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			o := operation{Operation: op, path: path, method: method}
			if mode, ok := op.Extensions["x-idempotency"].(map[string]any); ok {
				o.mode, _ = mode["mode"].(string)
			}
			o.callerVersion, _ = op.Extensions["x-caller-version"].(string)
			t.Run(method+" "+path, func(t *testing.T) { check(t, o) })
		}
	}
}

// codes returns the problem codes that a response declares.
func codes(t *testing.T, r *openapi3.Response) []string {
	t.Helper()
	if r == nil {
		return nil
	}
	list, _ := r.Extensions["x-problem-codes"].([]any)
	names := make([]string, 0, len(list))
	for _, code := range list {
		name, ok := code.(string)
		if !ok {
			t.Errorf("problem code %v is not a string", code)
		}
		names = append(names, name)
	}
	return names
}

// Ensure the contract is valid OpenAPI and that every example obeys its schema.
func TestContractIsValid(t *testing.T) {
	t.Parallel()
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
}

// Ensure every operation says what it is called, what it means, who may call it, and how it survives a retry and a race.
func TestOperationsAreDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	eachOperation(t, func(t *testing.T, o operation) {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(o.OperationID) || seen[o.OperationID] {
			t.Errorf("operationId %q is not kebab-case, or not the only one", o.OperationID)
		}
		seen[o.OperationID] = true
		if len(o.Tags) != 1 || o.Summary == "" || o.Description == "" {
			t.Error("needs one tag, a summary and a description")
		}
		if !slices.Contains([]string{"key", "natural", "version", "event", "safe"}, o.mode) {
			t.Errorf("x-idempotency mode is %q", o.mode)
		}
		if !slices.Contains([]string{"none", "if-match", "if-match-or-none-match"}, o.callerVersion) {
			t.Errorf("x-caller-version is %q", o.callerVersion)
		}
		if o.method == http.MethodHead {
			t.Error("every GET answers HEAD, so no HEAD is declared")
		}
		if (o.method == http.MethodGet) != (o.mode == "safe") {
			t.Errorf("mode %q does not fit %s", o.mode, o.method)
		}
		if o.mode == "version" && !o.versioned() {
			t.Error("survives a retry by a version that it does not take")
		}
		if o.Security == nil || len(*o.Security) != 1 {
			t.Fatal("needs exactly one security requirement")
		}
		requirement := (*o.Security)[0]
		if scopes, ok := requirement["providerSignature"]; o.signed() && (len(requirement) != 1 || !ok || len(scopes) != 0) {
			t.Errorf("needs the provider's signature and nothing else, has %v", requirement)
		}
		if scopes := requirement["oauth2"]; !o.signed() && (len(requirement) != 1 || len(scopes) != 1) {
			t.Errorf("needs exactly one scope, has %v", requirement)
		}
	})
}

// Ensure an operation that takes a client key declares the header as required, with its bounds, and everything that a
// key can lead to; and that no other operation takes one.
//
// Standard: litespec/ext/concurrency#declare-applicable-headers
// Standard: litespec/ext/concurrency#use-the-standard-idempotency-header
func TestKeyedOperationsDeclareTheKey(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o operation) {
		key := o.header("Idempotency-Key")
		if !o.keyed() {
			if key != nil || o.response("422") != nil {
				t.Error("takes a key although its mode is " + o.mode)
			}
			return
		}
		if key == nil || !key.Required {
			t.Fatal("Idempotency-Key is not declared as required")
		}
		schema := key.Schema.Value
		if schema.MinLength != 1 || schema.MaxLength == nil || *schema.MaxLength != 255 || schema.Pattern == "" {
			t.Error("Idempotency-Key is not bounded to 1 to 255 visible characters")
		}
		for value, want := range map[string]bool{
			"k": true, "!~": true, `"quoted,key"`: true, strings.Repeat("k", 255): true,
			"": false, "a b": false, "a\tb": false, "a\x7f": false, "clé": false, strings.Repeat("k", 256): false,
		} {
			if got := schema.VisitJSON(value) == nil; got != want {
				t.Errorf("key %q: accepted %t, want %t", value, got, want)
			}
		}
		for status, r := range o.accepted() {
			if r.Headers["Idempotent-Replayed"] == nil {
				t.Errorf("%s does not declare Idempotent-Replayed", status)
			}
		}
		for status, code := range map[string]string{
			"400": "idempotency_key_required", "409": "idempotency_key_in_progress", "422": "idempotency_key_reused",
		} {
			if !slices.Contains(codes(t, o.response(status)), code) {
				t.Errorf("%s does not declare %s", status, code)
			}
		}
		if !slices.Contains(codes(t, o.response("400")), "invalid_idempotency_key") {
			t.Error("400 does not declare invalid_idempotency_key")
		}
		if r := o.response("409"); r != nil && r.Headers["Retry-After"] == nil {
			t.Error("409 does not declare Retry-After")
		}
	})
}

// Ensure an operation that takes the caller's version declares the precondition, both of its refusals and the new tag;
// and that no other operation does.
func TestVersionedOperationsDeclareThePrecondition(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o operation) {
		match, none := o.header("If-Match"), o.header("If-None-Match")
		if !o.versioned() {
			if match != nil && o.mode != "safe" || o.response("428") != nil || slices.Contains(codes(t, o.response("409")), "version_conflict") {
				t.Error("takes a version although it says none")
			}
			return
		}
		if match == nil || match.Required != (o.callerVersion == "if-match") {
			t.Error("If-Match is not declared, or wrongly required")
		}
		if (none != nil) != (o.callerVersion == "if-match-or-none-match") {
			t.Error("If-None-Match does not fit " + o.callerVersion)
		}
		for status, code := range map[string]string{
			"400": "invalid_precondition", "409": "version_conflict", "428": "precondition_required",
		} {
			if !slices.Contains(codes(t, o.response(status)), code) {
				t.Errorf("%s does not declare %s", status, code)
			}
		}
		for status, r := range o.accepted() {
			requireStrongETag(t, status, r)
		}
	})
}

// Ensure every read takes preconditions, declares what they lead to, and hands out the tag that it compares with, where
// it has one.
func TestReadsAreConditional(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o operation) {
		read := o.mode == "safe"
		for _, name := range []string{"If-Match", "If-None-Match"} {
			if header := o.header(name); read && (header == nil || header.Required) {
				t.Errorf("%s is not declared, or required", name)
			}
		}
		failed := slices.Contains(codes(t, o.response("412")), "precondition_failed")
		if read != (o.response("304") != nil) || read != failed {
			t.Fatal("reads declare 304 and 412, and only reads")
		}
		if read && o.response("200").Headers["ETag"] != nil {
			requireStrongETag(t, "304", o.response("304"))
			requireStrongETag(t, "200", o.response("200"))
		}
		for _, status := range []string{"200", "304"} {
			if r := o.response(status); r != nil && (r.Headers["Cache-Control"] != nil) != (o.mode == "safe") {
				t.Errorf("%s: reads declare Cache-Control, and only reads", status)
			}
		}
	})
}

func requireStrongETag(t *testing.T, status string, r *openapi3.Response) {
	t.Helper()
	if r.Headers["ETag"] == nil || !r.Headers["ETag"].Value.Required {
		t.Errorf("%s does not declare ETag as required", status)
		return
	}
	schema := r.Headers["ETag"].Value.Schema.Value
	if schema.VisitJSON(`"b3JkZXI6Nw"`) != nil || schema.VisitJSON(`W/"b3JkZXI6Nw"`) == nil || schema.VisitJSON(`b3JkZXI6Nw`) == nil {
		t.Errorf("%s: ETag is not declared as a strong tag", status)
	}
}

// Ensure every error is a problem with declared codes, and that one code means one status everywhere.
func TestErrorsAreProblems(t *testing.T) {
	t.Parallel()
	statusOf := map[string]string{}
	check := func(t *testing.T, status string, r *openapi3.Response) {
		t.Helper()
		names := codes(t, r)
		if len(names) == 0 {
			t.Errorf("%s declares no x-problem-codes", status)
		}
		for _, code := range names {
			if before, ok := statusOf[code]; ok && before != status {
				t.Errorf("%s is declared for %s and for %s", code, before, status)
			}
			statusOf[code] = status
		}
		content := slices.Collect(maps.Keys(r.Content))
		switch {
		case !slices.Equal(content, []string{"application/problem+json"}):
			t.Errorf("%s is %v, want application/problem+json", status, content)
		case r.Content["application/problem+json"].Schema.Ref != "#/components/schemas/Problem":
			t.Errorf("%s is not a Problem", status)
		}
		if r.Headers["Cache-Control"] == nil || r.Headers["Cache-Control"].Ref != "#/components/headers/NoStore" {
			t.Errorf("%s may be kept by a cache", status)
		}
		for status0, header := range map[string]string{"401": "WWW-Authenticate", "403": "WWW-Authenticate", "503": "Retry-After"} {
			if status == status0 && (r.Headers[header] == nil || !r.Headers[header].Value.Required) {
				t.Errorf("%s does not declare %s", status, header)
			}
		}
	}
	eachOperation(t, func(t *testing.T, o operation) {
		for status, ref := range o.Responses.Map() {
			if status >= "400" {
				check(t, status, ref.Value)
			}
		}
		for _, status := range []string{"400", "500", "503"} {
			if o.response(status) == nil {
				t.Errorf("does not declare %s", status)
			}
		}
		for _, status := range []string{"401", "403"} {
			if (o.response(status) == nil) != o.signed() {
				t.Errorf("%s goes with an access token", status)
			}
		}
		if slices.Contains(codes(t, o.response("400")), "invalid_signature") != o.signed() {
			t.Error("invalid_signature goes with a signature")
		}
		for _, status := range []string{"408", "413", "415"} {
			if (o.RequestBody != nil) != (o.response(status) != nil) {
				t.Errorf("%s goes with a request body", status)
			}
		}
		if (o.response("404") != nil) != strings.Contains(o.path, "{") {
			t.Error("404 goes with a path parameter")
		}
	})

	statusOf["route_not_found"], statusOf["method_not_allowed"] = "404", "405" // the router's, described in words
	var declared []string
	for _, code := range load(t).Components.Schemas["ProblemCode"].Value.Enum {
		declared = append(declared, code.(string))
	}
	slices.Sort(declared)
	if used := slices.Sorted(maps.Keys(statusOf)); !slices.Equal(used, declared) {
		t.Errorf("codes of responses\n%v\ncodes of ProblemCode\n%v", used, declared)
	}
}

// Ensure every answer carries the id of its exchange.
func TestAnswersCarryTheRequestID(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o operation) {
		for status, ref := range o.Responses.Map() {
			if id := ref.Value.Headers["Request-Id"]; id == nil || !id.Value.Required {
				t.Errorf("%s does not declare Request-Id", status)
			}
		}
	})
}

// Ensure the contract says whom to ask, and defines nothing that it does not use.
func TestNothingIsDefinedForNothing(t *testing.T) {
	t.Parallel()
	raw := string(api.OpenAPI)
	components := load(t).Components
	unused := func(kind string, names []string) {
		for _, name := range names {
			if !strings.Contains(raw, "'#/components/"+kind+"/"+name+"'") {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
	}
	unused("parameters", slices.Sorted(maps.Keys(components.Parameters)))
	unused("headers", slices.Sorted(maps.Keys(components.Headers)))
	unused("responses", slices.Sorted(maps.Keys(components.Responses)))
	unused("schemas", slices.Sorted(maps.Keys(components.Schemas)))
	unused("examples", slices.Sorted(maps.Keys(components.Examples)))
	if contact := load(t).Info.Contact; contact == nil || contact.URL == "" {
		t.Error("info has no contact")
	}
}

// Ensure every value is bounded, and no object takes members that the contract does not name; but for the provider's event,
// whose members are the provider's and which is bounded as a whole.
func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	eachSchema(t, func(at string, s *openapi3.Schema) {
		switch {
		case s.Type.Is(openapi3.TypeObject):
			if at == "ProviderEvent" {
				return
			}
			if s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has {
				t.Errorf("%s takes additional properties", at)
			}
		case s.Type.Is(openapi3.TypeString):
			if s.MaxLength == nil {
				t.Errorf("%s has no maxLength", at)
			}
		case s.Type.Is(openapi3.TypeArray):
			if s.MaxItems == nil {
				t.Errorf("%s has no maxItems", at)
			}
		case s.Type.Is(openapi3.TypeInteger):
			if s.Min == nil || s.Max == nil || (s.Format != "int32" && s.Format != "int64") {
				t.Errorf("%s has no minimum, maximum or format", at)
			}
		case !s.Type.Is(openapi3.TypeBoolean):
			t.Errorf("%s has type %v: no floats, and nothing untyped", at, s.Type)
		}
	})
}

// Ensure a string of a request that has a format has a pattern too: most formats are not validated, and the tests of
// hostile input decide by the pattern whether a value is valid.
func TestFormatsOfRequestsHaveAPattern(t *testing.T) {
	t.Parallel()
	eachOperation(t, func(t *testing.T, o operation) {
		seen := map[*openapi3.Schema]bool{}
		visit := func(at string, s *openapi3.Schema) {
			if s.Type.Is(openapi3.TypeString) && s.Format != "" && s.Pattern == "" {
				t.Errorf("%s has the format %s and no pattern: add one, since most formats are not validated", at, s.Format)
			}
		}
		for _, p := range slices.Concat(load(t).Paths.Find(o.path).Parameters, o.Parameters) {
			walkSchema(p.Value.Name, p.Value.Schema, seen, visit)
		}
		if o.RequestBody != nil {
			walkSchema("body", o.RequestBody.Value.Content["application/json"].Schema, seen, visit)
		}
	})
}

// Ensure the version of a resource travels in the ETag and nowhere else.
//
// Standard: litespec/ext/concurrency#hide-provider-version-values
func TestNoFieldIsAVersion(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?i)version|e-?tag|revision|xmin`)
	eachSchema(t, func(at string, s *openapi3.Schema) {
		for name := range s.Properties {
			if version.MatchString(name) {
				t.Errorf("%s shows a version in %s", at, name)
			}
		}
	})
	eachOperation(t, func(t *testing.T, o operation) {
		for _, p := range o.Parameters {
			if version.MatchString(p.Value.Name) {
				t.Errorf("takes a version in %s", p.Value.Name)
			}
		}
		for status, ref := range o.Responses.Map() {
			for name := range ref.Value.Headers {
				if name != "ETag" && version.MatchString(name) {
					t.Errorf("%s shows a version in %s", status, name)
				}
			}
		}
	})
}

// Ensure text that no database stores and no label shows is refused, and that people's names are not.
func TestTextIsPrintable(t *testing.T) {
	t.Parallel()
	schemas := load(t).Components.Schemas
	refused := []string{"a\x00b", "a\nb", "a\tb", "a\x7fb", "a\u0085b"}
	for _, required := range []*openapi3.SchemaRef{
		schemas["Address"].Value.Properties["name"], schemas["Address"].Value.Properties["line1"],
		schemas["Address"].Value.Properties["city"], schemas["Address"].Value.Properties["postal_code"],
		schemas["ProductName"], schemas["Carrier"], schemas["TrackingNumber"],
	} {
		requireText(t, required.Value, []string{"x", "Zoë O’Neill-Šmíd", "王小明", " a ", "👩‍🚀"}, append(refused, "", " ", " \u00a0 ", "\u3000", "\u1680\u2000\u2028\u202f\u205f"))
	}
	for _, optional := range []*openapi3.SchemaRef{schemas["Address"].Value.Properties["line2"], schemas["OptionalReason"]} {
		requireText(t, optional.Value, []string{"", "x", "Größe falsch"}, refused)
	}
}

func requireText(t *testing.T, s *openapi3.Schema, accepted, refused []string) {
	t.Helper()
	for _, text := range accepted {
		if err := s.VisitJSON(text); err != nil {
			t.Errorf("%q is refused: %v", text, err)
		}
	}
	for _, text := range refused {
		if s.VisitJSON(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// walkSchema visits a schema and those in it, each once.
func walkSchema(at string, ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool, visit func(string, *openapi3.Schema)) {
	if ref == nil || seen[ref.Value] {
		return
	}
	seen[ref.Value] = true
	visit(at, ref.Value)
	walkSchema(at+"[]", ref.Value.Items, seen, visit)
	for name, property := range ref.Value.Properties {
		walkSchema(at+"."+name, property, seen, visit)
	}
}

// eachSchema visits every schema of the contract: components, parameters, headers and bodies.
func eachSchema(t *testing.T, visit func(at string, s *openapi3.Schema)) {
	t.Helper()
	seen := map[*openapi3.Schema]bool{}
	walk := func(at string, ref *openapi3.SchemaRef) { walkSchema(at, ref, seen, visit) }
	doc := load(t)
	for name, ref := range doc.Components.Schemas {
		walk(name, ref)
	}
	for name, ref := range doc.Components.Parameters {
		walk("parameter "+name, ref.Value.Schema)
	}
	for name, ref := range doc.Components.Headers {
		walk("header "+name, ref.Value.Schema)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			for _, ref := range slices.Concat(item.Parameters, op.Parameters) {
				walk(at+" "+ref.Value.Name, ref.Value.Schema)
			}
			if op.RequestBody != nil {
				walk(at+" body", op.RequestBody.Value.Content["application/json"].Schema)
			}
			for status, ref := range op.Responses.Map() {
				for _, content := range ref.Value.Content {
					walk(at+" "+status, content.Schema)
				}
				for name, header := range ref.Value.Headers {
					walk(at+" "+status+" "+name, header.Value.Schema)
				}
			}
		}
	}
}
