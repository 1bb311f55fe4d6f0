package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"example.com/orders/client/openapi"
)

// passed is one request and what became of it.
type passed struct {
	actor, method, path string
	sent, received      http.Header
	body, answer        []byte
	status              int
	code                openapi.ProblemCode
	err                 error // the answer was lost
}

// outcome is the status line, with the problem's code.
func (x passed) outcome() string {
	text := fmt.Sprintf("%d %s", x.status, http.StatusText(x.status))
	if x.code != "" {
		text += "   " + string(x.code)
	}
	return text
}

func (x passed) replayed() bool { return x.received.Get("Idempotent-Replayed") == "true" }

// wire carries the requests of one actor and hands each exchange to the step. Every request has a connection of its own:
// on a reused one that breaks, Go's transport itself resends a keyed request, and the retry would not be seen.
type wire struct {
	actor string
	step  *step
	under *http.Transport
	sent  *atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	x := passed{actor: w.actor, method: r.Method, path: r.URL.RequestURI(), sent: r.Header.Clone()}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { w.sent.Add(1) },
	}))
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			x.body, _ = io.ReadAll(body) // from memory
		}
	}
	response, err := w.under.RoundTrip(r)
	if err == nil {
		x.answer, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if x.err = err; err != nil {
		w.step.note(x)
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(x.answer))
	x.status, x.received = response.StatusCode, response.Header
	x.code = codeOf(x.answer, x.status)
	w.step.note(x)
	return response, nil
}
