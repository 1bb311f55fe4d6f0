package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

// problemBase is the prefix of problem type URIs; the code follows.
const problemBase = "https://orders.example.com/problems/"

// The contract's bounds on the parts of a problem that come from the request.
const (
	maxInstance    = 2048
	maxField       = 255
	maxFieldErrors = 100
)

// problems writes all errors of the API as application/problem+json (RFC 9457).
type problems struct {
	log   *slog.Logger
	types map[domain.Code]problemType
}

func newProblems(log *slog.Logger) problems {
	p := problems{log: log, types: map[domain.Code]problemType{}}
	for _, k := range problemTypes() {
		p.types[k.code] = k
	}
	return p
}

func (p problems) write(w http.ResponseWriter, r *http.Request, err error) {
	refusal := classify(err)
	kind, ok := p.types[refusal.Code]
	if !ok {
		kind = p.types[codeInternal]
	}
	seen := recordOf(r.Context())
	if seen.failed { // the client does not read the response
		return
	}
	seen.code = string(refusal.Code)
	canceled := errors.Is(r.Context().Err(), context.Canceled)
	if canceled && refusal.Code != codeRequestTimeout { // net/http also cancels the context when a body is late
		seen.code = clientGone // the client has disconnected; the service did not fail
	}
	if kind.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		p.log.ErrorContext(r.Context(), "request failed", "operation", operationOf(r.Context()).id,
			"code", refusal.Code, "error", err)
	}
	if seen.written { // part of another response was sent: only closing the connection signals an error
		panic(http.ErrAbortHandler)
	}
	p.send(w, r, refusal, kind)
}

func (p problems) send(w http.ResponseWriter, r *http.Request, refusal *domain.Error, kind problemType) {
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if kind.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(kind.retryAfter))
	}
	if refusal.Code == codeUnauthenticated || refusal.Code == app.CodeForbidden {
		header.Set("WWW-Authenticate", challenge(r, refusal.Code))
	}
	if refusal.Code == codeRequestTimeout {
		header.Set("Connection", "close") // RFC 9110, section 15.5.9
	}
	w.WriteHeader(kind.status)
	if r.Method == http.MethodHead {
		return
	}
	_ = json.NewEncoder(w).Encode(openapi.Problem{
		Type: problemBase + string(refusal.Code), Title: kind.title, Detail: refusal.Message,
		Status:   int32(kind.status), //nolint:gosec // G115: an HTTP status
		Instance: instance(r), Code: openapi.ProblemCode(refusal.Code), TraceID: traceID(r), Errors: fieldErrors(refusal),
	})
}

func traceID(r *http.Request) string {
	if id := trace.SpanContextFromContext(r.Context()).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// instance is the path of the request as a URI reference: escaped, bounded, and with one leading slash, since two would
// name a host. It is never cut within a percent-escape, because the result would not be a URI.
func instance(r *http.Request) string {
	path := clip("/"+strings.TrimLeft(r.URL.EscapedPath(), "/"), maxInstance)
	if i := strings.LastIndexByte(path, '%'); i >= 0 && i > len(path)-len("%00") {
		path = path[:i]
	}
	return path
}

// fieldErrors lists the invalid fields. The number of entries and the length of field names are bounded.
func fieldErrors(refusal *domain.Error) []openapi.FieldError {
	named := refusal.Fields[:min(len(refusal.Fields), maxFieldErrors)]
	fields := make([]openapi.FieldError, len(named))
	for i, f := range named {
		fields[i] = openapi.FieldError{Field: clip(f.Field, maxField), Code: f.Code, Message: f.Message}
	}
	return fields
}

// clip cuts s to at most the given number of bytes, never within a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// recoverPanics turns a panic into an internal error and logs the stack trace, which the client never sees.
func (p problems) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http asks for this very value
				panic(v)
			}
			p.log.ErrorContext(r.Context(), "panic", "operation", recordOf(r.Context()).operation, "value", v,
				"stack", string(debug.Stack()))
			p.write(w, r, errInternal)
		}()
		next.ServeHTTP(w, r)
	})
}

// classify maps any error to an error that the client may see. An unknown error becomes internal.
func classify(err error) *domain.Error {
	var refusal *domain.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, ErrUnauthenticated):
		return errUnauthenticated
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return app.ErrTryAgain // the client disconnected or the request timed out before anything was committed
	default:
		return generated(err)
	}
}

// generated maps the errors of the generated wrapper and of its JSON decoding. The steps before it already reject
// almost all of them.
func generated(err error) *domain.Error {
	var format *openapi.InvalidParamFormatError
	var count *openapi.TooManyValuesForParamError
	var header *openapi.RequiredHeaderError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &format):
		return invalidField(format.ParamName)
	case errors.As(err, &count):
		return invalidField(count.ParamName)
	case errors.As(err, &header) && header.ParamName == headerIfMatch:
		return errPreconditionRequired
	case errors.As(err, &typed):
		return invalidField(strings.ReplaceAll(typed.Field, ".", "/"))
	default:
		return errInternal
	}
}

func invalidField(name string) *domain.Error {
	return &domain.Error{
		Code: domain.CodeValidationFailed, Message: "The request is not valid.",
		Fields: []domain.FieldError{{Field: name, Code: "format", Message: "is not valid"}},
	}
}
