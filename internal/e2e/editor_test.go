package e2e

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// editorRequest is one request of docs/api.http.
type editorRequest struct {
	title, name, method, url, body string
	headers                        [][2]string
}

// Ensure that docs/api.http has a request for every operation of the contract, and that the service accepts each of them, sent
// in order and with what earlier answers gave. Only the provider's event is refused, because no editor can sign it.
func TestEditorRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	s.Product(t, "TEA-001", 1999, 100)
	s.Stocked(t, "default", "TEA-001", 10) // what adjust-stock adds
	s.StartWorker(t)
	variables, requests := readEditorRequests(t)
	require.Equal(t, "http://127.0.0.1:8080", variables["api"])
	variables["api"], variables["sandbox"] = s.URL, s.Env["STRIPE_BASE_URL"]
	e := &editor{t: t, variables: variables, answers: map[string]testkit.Answer{}}
	sent := map[string]bool{}
	for _, r := range requests {
		operation, _, _ := strings.Cut(r.title, ":")
		sent[operation] = true
		a := e.send(r)
		switch operation {
		case "receive-provider-event":
			require.Equal(t, "invalid_signature", a.Code(), string(a.Body))
			continue
		case "get-payment":
			testkit.Eventually(t, "the payment succeeds", func() bool { return e.send(r).Text("status") == "succeeded" })
		}
		require.Equal(t, 2, a.Status/100, "%s: %s", r.title, a.Body)
	}
	for _, operation := range operationIDs(t) {
		require.True(t, sent[operation], "docs/api.http has no request for %s", operation)
	}
}

// readEditorRequests reads the variables and the requests of docs/api.http.
func readEditorRequests(t *testing.T) (variables map[string]string, requests []editorRequest) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/api.http")
	require.NoError(t, err)
	parts := strings.Split(string(raw), "\n###")
	variables = map[string]string{}
	for line := range strings.SplitSeq(parts[0], "\n") {
		if name, value, ok := strings.Cut(strings.TrimPrefix(line, "@"), " = "); ok && line[0] == '@' {
			variables[name] = value
		}
	}
	for _, part := range parts[1:] {
		requests = append(requests, readEditorRequest(t, part))
	}
	return variables, requests
}

// readEditorRequest reads a title, comments that may give a name, the request line, the headers and after an empty line the body.
func readEditorRequest(t *testing.T, part string) (r editorRequest) {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimSpace(part), "\n\n")
	r.body = body
	for i, line := range strings.Split(head, "\n") {
		name, named := strings.CutPrefix(line, "# @name ")
		switch {
		case i == 0:
			r.title = line
		case named:
			r.name = name
		case strings.HasPrefix(line, "#"):
		case r.method == "":
			var ok bool
			r.method, r.url, ok = strings.Cut(line, " ")
			require.True(t, ok, line)
		default:
			header, value, ok := strings.Cut(line, ": ")
			require.True(t, ok, line)
			r.headers = append(r.headers, [2]string{header, value})
		}
	}
	return r
}

// editor sends requests as the extensions do.
type editor struct {
	t         *testing.T
	variables map[string]string
	answers   map[string]testkit.Answer // by the name of their request
}

func (e *editor) send(r editorRequest) testkit.Answer {
	e.t.Helper()
	request, err := http.NewRequest(r.method, e.fill(r.url), strings.NewReader(e.fill(r.body)))
	require.NoError(e.t, err)
	for _, h := range r.headers {
		request.Header.Set(h[0], e.fill(h[1]))
	}
	client := &http.Client{Timeout: testkit.Wait}
	if strings.HasPrefix(r.url, "{{api}}") {
		client.Transport = testkit.Checked(e.t, http.DefaultTransport)
	}
	response, err := client.Do(request)
	require.NoError(e.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(e.t, err)
	a := testkit.Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	if r.name != "" {
		e.answers[r.name] = a
	}
	return a
}

var reference = regexp.MustCompile(`\{\{(.*?)\}\}`)

// fill puts the values of references in their place: variables, a new UUID, and headers and members of earlier answers.
func (e *editor) fill(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "{}")
		if name == "$guid" {
			return uuid.NewString()
		}
		if value, ok := e.variables[name]; ok {
			return value
		}
		request, path, _ := strings.Cut(name, ".response.")
		a, ok := e.answers[request]
		require.True(e.t, ok, "%s refers to what was not answered before", found)
		value := ""
		if header, ok := strings.CutPrefix(path, "headers."); ok {
			value = a.Header.Get(header)
		} else if member, ok := strings.CutPrefix(path, "body.$."); ok {
			value = a.Text(member)
		}
		require.NotEmpty(e.t, value, "%s is not in the answer: %s", found, a.Body)
		return value
	})
}

// operationIDs are the operations of the contract.
func operationIDs(t *testing.T) (ids []string) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/openapi.yaml")
	require.NoError(t, err)
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			ids = append(ids, operation.OperationID)
		}
	}
	slices.Sort(ids)
	return ids
}
