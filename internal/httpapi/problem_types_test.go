package httpapi

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"example.com/orders/api"
	"example.com/orders/internal/domain"
)

// statuses is the table of problem codes: the status of each.
func statuses(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, k := range problemTypes() {
		require.NotContains(t, all, string(k.code), "listed twice")
		all[string(k.code)] = k.status
	}
	return all
}

// Ensure docs/problems.md lists exactly the codes of the service, each with its status, its meaning and what the caller
// should do, and speaks of Retry-After where it is sent.
func TestProblemsPageListsTheCodes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/problems.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9]{3}) \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(string(raw), -1)
	listed, retried := map[string]int{}, map[string]bool{}
	for _, row := range rows {
		require.NotContains(t, listed, row[1], "listed twice")
		listed[row[1]], err = strconv.Atoi(row[2])
		require.NoError(t, err)
		retried[row[1]] = strings.Contains(row[4], "Retry-After")
	}
	require.Equal(t, statuses(t), listed)
	for _, k := range problemTypes() {
		require.Equal(t, k.retryAfter > 0, retried[string(k.code)], "Retry-After of %s", k.code)
	}
}

// Ensure the contract's ProblemCode has exactly the codes of the service, and that every response declares its codes
// under the status that they are sent with.
func TestContractListsTheCodes(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	want := statuses(t)
	listed := map[string]int{}
	for _, code := range spec.Components.Schemas["ProblemCode"].Value.Enum {
		listed[code.(string)] = want[code.(string)]
	}
	require.Equal(t, want, listed)
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			for status, r := range o.Responses.Map() {
				for _, code := range declaredCodes(r) {
					require.Equal(t, status, strconv.Itoa(want[code]), "%s %s: %s", method, path, code)
				}
			}
		}
	}
}

func declaredCodes(r *openapi3.ResponseRef) []string {
	var names []string
	list, _ := r.Value.Extensions["x-problem-codes"].([]any)
	for _, code := range list {
		name, _ := code.(string)
		names = append(names, name)
	}
	return names
}

// Ensure the problems that the contract shows are those that are sent: their types, titles, statuses and field errors.
func TestProblemExamplesAreReal(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	p := newProblems(nil)
	shown := 0
	for name, ref := range spec.Components.Examples {
		example, _ := ref.Value.Value.(map[string]any)
		code, isProblem := example["code"].(string)
		if !isProblem {
			continue
		}
		shown++
		kind := p.types[domain.Code(code)]
		require.Equal(t, problemBase+code, example["type"], name)
		require.Equal(t, kind.title, example["title"], name)
		require.EqualValues(t, kind.status, example["status"], name)
		require.NotEmpty(t, example["detail"], name)
		fields, _ := example["errors"].([]any)
		for _, field := range fields {
			e, _ := field.(map[string]any)
			_, message := broken("maximum")
			require.Equal(t, message, e["message"])
		}
	}
	require.Greater(t, shown, 5)
}

// Ensure the tags that the contract shows are tags of the resources that it shows.
func TestTagExamplesAreReal(t *testing.T) {
	t.Parallel()
	spec, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	product := productResource("default", "TEA-001").tag(1)
	require.Equal(t, anyOrder.tag(1), spec.Components.Headers["ETag"].Value.Example)
	for name, want := range map[string]string{
		"IfMatch": anyOrder.tag(1), "ReadIfMatch": anyOrder.tag(1), "IfNoneMatch": anyOrder.tag(1), "EditIfMatch": product,
	} {
		require.Equal(t, want, spec.Components.Parameters[name].Value.Example, name)
	}
	after, _ := spec.Components.Parameters["After"].Value.Example.(string)
	_, err = orderAfter(&after)
	require.NoError(t, err)
}
