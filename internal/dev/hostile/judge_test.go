package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"example.com/orders/internal/dev/testkit"
)

// judge tells what is wrong with an answer.
func (w *world) judge(q request, a answer, must want) (wrong []string) {
	r := q.parsed()
	if r == nil {
		return beforeHandlers(a)
	}
	if err := testkit.CheckContract(r, a.status, a.header, a.body); err != nil {
		wrong = append(wrong, "against the contract: "+err.Error())
	}
	if a.status >= http.StatusInternalServerError {
		wrong = append(wrong, "a fault of the service")
	}
	if a.status >= http.StatusBadRequest && q.method != http.MethodHead {
		wrong = append(wrong, w.judgeProblem(a)...)
	}
	switch {
	case must.verdict == good && slices.Contains(formal, a.status):
		wrong = append(wrong, "the contract takes this, and it is refused for its form")
	case must.verdict == refused && q.method != http.MethodHead:
		wrong = append(wrong, must.judge(a)...)
	}
	return wrong
}

// beforeHandlers checks what net/http answers by itself to what is no request.
func beforeHandlers(a answer) (wrong []string) {
	statuses := []int{
		http.StatusBadRequest, http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented,
		http.StatusHTTPVersionNotSupported,
	}
	if !slices.Contains(statuses, a.status) {
		wrong = append(wrong, "this is no HTTP, and was answered")
	}
	return wrong
}

// problem is the body of an error.
type problem struct {
	Code     string                                  `json:"code"`
	Instance string                                  `json:"instance"`
	Errors   []struct{ Field, Code, Message string } `json:"errors"`
}

func (a answer) problem() (p problem) {
	_ = json.Unmarshal(a.body, &p) // CheckContract complains
	return p
}

func (w *world) judgeProblem(a answer) (wrong []string) {
	p := a.problem()
	if !w.listed[p.Code] {
		wrong = append(wrong, fmt.Sprintf("docs/problems.md does not list the code %q", p.Code))
	}
	if u, err := url.Parse(p.Instance); err != nil || u.IsAbs() || u.Host != "" {
		wrong = append(wrong, fmt.Sprintf("instance is no path: %q", p.Instance))
	}
	return wrong
}

// judge tells where a refusal is another one than must be.
func (m want) judge(a answer) (wrong []string) {
	p := a.problem()
	if a.status < http.StatusBadRequest || m.status != 0 && a.status != m.status {
		wrong = append(wrong, fmt.Sprintf("must be refused with %d", m.status))
	}
	if m.codes != nil && !slices.Contains(m.codes, p.Code) {
		wrong = append(wrong, "must be refused as "+strings.Join(m.codes, " or "))
	}
	names := func(e struct{ Field, Code, Message string }) bool { return e.Field == m.field }
	if p.Code == "validation_failed" && m.field != "-" && !slices.ContainsFunc(p.Errors, names) {
		wrong = append(wrong, fmt.Sprintf("errors do not name %q", m.field))
	}
	return wrong
}
