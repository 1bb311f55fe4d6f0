package lab

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/spans"
)

// labScope is the instrumentation scope of the spans that the lab makes itself.
const labScope = "orders/lab"

// The attributes of a tap's spans.
const (
	attrCaller = "caller"
	attrCallee = "callee"
)

// newTap makes handlers that hand requests on and report a span of each, with its bytes.
func newTap(report func(spans.Span)) func(caller, callee, target string) http.Handler {
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans.Processor(report))).Tracer(labScope)
	return func(caller, callee, target string) http.Handler {
		to, err := url.Parse(target)
		if err != nil {
			panic(err) // our own listener's
		}
		t := &tap{tracer: tracer, caller: caller, callee: callee}
		t.proxy = &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
			ModifyResponse: note,
			ErrorHandler:   cut,
			ErrorLog:       log.New(io.Discard, "", 0),
		}
		return t
	}
}

// tap stands between a caller and a callee.
type tap struct {
	tracer         trace.Tracer
	caller, callee string
	proxy          *httputil.ReverseProxy
}

// ServeHTTP implements http.Handler.
func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	raw, err := httputil.DumpRequest(r, true)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller has gone
	}
	ctx, span := t.tracer.Start(ctx, r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String(attrCaller, t.caller), attribute.String(attrCallee, t.callee),
		attribute.String(scenario.AttrRequest, scenario.Redacted(raw))))
	defer span.End()
	defer func() {
		if p := recover(); p != nil {
			span.SetStatus(codes.Error, "the connection was cut")
			panic(p)
		}
	}()
	r = r.WithContext(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	t.proxy.ServeHTTP(w, r)
}

func note(response *http.Response) error {
	raw, err := httputil.DumpResponse(response, true)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	trace.SpanFromContext(response.Request.Context()).SetAttributes(
		attribute.String(scenario.AttrResponse, string(bytes.TrimSpace(raw))))
	return nil
}

// cut ends the caller's connection without an answer, as the callee did.
func cut(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
