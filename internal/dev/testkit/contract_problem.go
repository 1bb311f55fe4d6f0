package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const problemType = "application/problem+json"

// internals is text that tells of SQL, drivers, the provider, the schema or the source, in whatever wording.
var internals = regexp.MustCompile(`(?i)sqlstate|pgx|pgconn|postgres|psql|\bsql\b|select .* from|insert into|update .* set|` +
	`constraint|relation "|duplicate key|deadlock|goroutine|runtime error|nil pointer|panic|\.go:\d|/internal/|` +
	`stripe|river|idempotency_keys|tenant_id|jwx|jwt|jwks|openapi|json:|127\.0\.0\.1|localhost`)

// checkProblem checks what the schema of a problem cannot say.
func checkProblem(r *http.Request, declared *openapi3.Response, status int, header http.Header, body []byte) error {
	if status < http.StatusBadRequest || r.Method == http.MethodHead {
		return nil
	}
	var p struct {
		Type, Title, Detail, Instance, Code string
		Status                              int
		TraceID                             string `json:"trace_id"`
		Errors                              []struct{ Field, Code, Message string }
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("a problem that cannot be read: %w", err)
	}
	var broken []error
	must := func(holds bool, complaint string) {
		if !holds {
			broken = append(broken, errors.New(complaint))
		}
	}
	kind, err := url.Parse(p.Type)
	must(err == nil && kind.IsAbs() && kind.Host != "", "type is not an absolute URI")
	must(header.Get("Content-Type") == problemType, "not "+problemType)
	must(p.Status == status, "status is not that of the answer")
	path := "/" + strings.TrimLeft(r.URL.EscapedPath(), "/")
	must(p.Instance != "" && strings.HasPrefix(path, p.Instance), "instance is not the request's path")
	must(p.Detail != "", "no detail")
	must(header.Get("Cache-Control") == "no-store", "a problem that may be kept")
	must(len(p.TraceID) == 32 && p.TraceID == header.Get("Request-Id"), "no trace_id, or not that of the answer")
	must(slices.Contains(codes(declared), p.Code), "code "+p.Code+" is not declared for this answer")
	must((p.Code == "validation_failed") == (len(p.Errors) > 0), "errors go with validation_failed, and only with it")
	texts := p.Title + "\n" + p.Detail
	for _, e := range p.Errors {
		texts += "\n" + e.Code + "\n" + e.Message
	}
	must(!internals.MatchString(texts), "tells of the inside: "+internals.FindString(texts))
	must(status != http.StatusServiceUnavailable || header.Get("Retry-After") != "", "no Retry-After")
	return errors.Join(broken...)
}

// codes is the problem codes that a response declares.
func codes(r *openapi3.Response) []string {
	var names []string
	list, _ := r.Extensions["x-problem-codes"].([]any)
	for _, code := range list {
		names = append(names, fmt.Sprint(code))
	}
	return names
}
