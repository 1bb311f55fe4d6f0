package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"regexp"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/client"
	"example.com/orders/client/openapi"
)

// Exchange is one request of a client and what became of it.
type Exchange struct {
	Actor, Method, Path string
	Sent, Received      http.Header
	Body, Answer        []byte
	Status              int
	Code                openapi.ProblemCode
	Err                 error // no answer came
}

// Outcome is the status line, with the problem's code.
func (x Exchange) Outcome() string {
	text := fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status))
	if x.Code != "" {
		text += "   " + string(x.Code)
	}
	return text
}

// Replayed tells whether the answer is one that was given before.
func (x Exchange) Replayed() bool { return x.Received.Get("Idempotent-Replayed") == "true" }

// The scopes of the actors. Customers have names with a small letter; sam works here, and the auditor reads.
const (
	customerScopes = "orders:read orders:write orders:fulfil orders:refund catalog:read catalog:write"
	staffScopes    = customerScopes + " orders:admin"
)

// client is a client of one actor.
func (r *Run) client(url, actor string, transport http.RoundTripper) *client.Client {
	scopes := customerScopes
	if actor == "sam" || actor == "auditor" {
		scopes = staffScopes
	}
	token := func(context.Context) (string, error) { return r.Sandbox.Token(actor, "default", scopes, time.Hour) }
	return must2(client.New(url, token, client.WithHTTPClient(&http.Client{Transport: transport})))(r)
}

// as is a client of one actor whose requests are told.
func (r *Run) as(actor string) *client.Client { return r.client(r.URL, actor, r.wire(actor, true)) }

// untold is as, for what only prepares the scene.
func (r *Run) untold(actor string) *client.Client {
	return r.client(r.URL, actor, r.wire(actor, false))
}

// lossily is as, through the proxy that loses answers.
func (r *Run) lossily(actor string) *client.Client {
	return r.client(r.Proxy.URL, actor, r.wire(actor, true))
}

// quiet is a client that reads everything. It has neither spans nor a word in the tale.
func (r *Run) quiet() *client.Client { return r.client(r.URL, "auditor", http.DefaultTransport) }

func (r *Run) wire(actor string, told bool) *wire {
	return &wire{actor: actor, told: told, run: r, under: &http.Transport{DisableKeepAlives: true}}
}

// wire carries the requests of one actor, each with a span of its own, and hands each exchange to the run. Every request has
// a connection of its own: on a reused one that breaks, Go's transport itself resends a keyed request, and the retry would
// not be seen.
type wire struct {
	actor string
	told  bool
	run   *Run
	under *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := w.run.tracer.Start(r.Context(), r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String(AttrActor, w.actor)))
	defer span.End()
	r = r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { w.run.sent.Add(1) },
	}))
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	x := Exchange{Actor: w.actor, Method: r.Method, Path: r.URL.RequestURI(), Sent: r.Header}
	if raw, err := httputil.DumpRequestOut(r, true); err == nil {
		span.SetAttributes(attribute.String(AttrRequest, Redacted(raw)))
		_, x.Body, _ = bytes.Cut(raw, []byte("\r\n\r\n"))
	}
	response, err := w.under.RoundTrip(r)
	if err == nil {
		var raw []byte
		if raw, err = httputil.DumpResponse(response, true); err == nil {
			span.SetAttributes(attribute.String(AttrResponse, string(raw)))
			x.Answer, err = io.ReadAll(response.Body)
		}
		response.Body.Close()
	}
	if x.Err = err; err != nil {
		span.SetStatus(codes.Error, "the answer is lost")
		w.exchanged(x)
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(x.Answer))
	x.Status, x.Received = response.StatusCode, response.Header
	x.Code = codeOf(x.Answer, x.Status)
	w.exchanged(x)
	return response, nil
}

var credentials = regexp.MustCompile(`(?i)(\r\nAuthorization: \w+ )[^\r]+`)

// Redacted is a raw request without its credentials.
func Redacted(raw []byte) string { return credentials.ReplaceAllString(string(raw), "$1…") }

func codeOf(body []byte, status int) openapi.ProblemCode {
	var p openapi.Problem
	if status < http.StatusBadRequest || json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Code
}

func (w *wire) exchanged(x Exchange) {
	if !w.told {
		return
	}
	r := w.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, x)
	if !r.gathering {
		r.listener.Exchange(x)
	}
}

// last is the latest exchange.
func (r *Run) last() Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.exchanges) == 0 {
		return Exchange{}
	}
	return r.exchanges[len(r.exchanges)-1]
}

// Told is the exchanges so far.
func (r *Run) Told() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exchanges
}

func count(all []Exchange, is func(Exchange) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

func withStatus(status int) func(Exchange) bool {
	return func(x Exchange) bool { return x.Status == status }
}

func withCode(code openapi.ProblemCode) func(Exchange) bool {
	return func(x Exchange) bool { return x.Code == code }
}
