package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/orders/client/openapi"
)

// Problem is a refusal by the service (RFC 9457). Branch on Code, show Detail, quote TraceID.
type Problem struct {
	Status     int
	Code       openapi.ProblemCode // empty when something before the service answered
	Title      string
	Detail     string
	Fields     []openapi.FieldError // with validation_failed
	TraceID    string
	RetryAfter time.Duration // zero: not said
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, p.Title)
	if p.Code != "" {
		text = fmt.Sprintf("%d %s", p.Status, p.Code)
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, f := range p.Fields {
		text += fmt.Sprintf("; %s: %s", f.Field, f.Message)
	}
	if p.TraceID != "" {
		text += " (trace " + p.TraceID + ")"
	}
	return text
}

// HasCode reports whether err is, or wraps, a Problem of that code.
func HasCode(err error, code openapi.ProblemCode) bool {
	var p *Problem
	return errors.As(err, &p) && p.Code == code
}

// GaveUp ends a call that got no final answer, most often because its time ran out. The change may or may not have been
// applied: call again with WithKey(Key), or read, to learn which.
type GaveUp struct {
	Key      string // the call's Idempotency-Key, where it had one
	Attempts int
	Err      error // what was wrong with the last attempt
}

func (g *GaveUp) Error() string {
	return fmt.Sprintf("no final answer after %d attempts: %v", g.Attempts, g.Err)
}

func (g *GaveUp) Unwrap() error { return g.Err }

// problemOf parses an answer that is not 2xx. It ignores what it cannot parse.
func problemOf(status int, header http.Header, body []byte) *Problem {
	var p openapi.Problem
	if json.Unmarshal(body, &p) != nil {
		p = openapi.Problem{}
	}
	if p.Title == "" {
		p.Title = http.StatusText(status)
	}
	return &Problem{
		Status: status, Code: p.Code, Title: p.Title, Detail: p.Detail, Fields: p.Errors, TraceID: p.TraceID,
		RetryAfter: retryAfter(header),
	}
}

// passing reports whether the error is transient: the same request may succeed later.
func (p *Problem) passing() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return p.Code == openapi.ProblemCodeIdempotencyKeyInProgress
	}
}

// unsure reports whether the refused attempt may have been applied all the same. try_again says that it was not; a
// gateway's answer says nothing.
func (p *Problem) unsure() bool {
	return p.Status >= http.StatusBadGateway && p.Code != openapi.ProblemCodeTryAgain
}
