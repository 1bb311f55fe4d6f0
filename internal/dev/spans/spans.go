// Package spans carries the spans of a process, as they begin and as they end, to what shows them: within the process, or
// over a pipe to its parent, which then also knows the spans that a killed process had begun.
package spans

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Span is one span. It is reported when it begins, with a zero End, and again when it ends.
type Span struct {
	Trace      string            `json:"trace"`
	ID         string            `json:"id"`
	Parent     string            `json:"parent,omitempty"` // empty: it is the first of its trace
	Scope      string            `json:"scope"`            // the instrumentation scope, which tells what made it
	Name       string            `json:"name"`
	Kind       string            `json:"kind"` // internal, server, client, producer or consumer
	Start      time.Time         `json:"start"`
	End        time.Time         `json:"end,omitzero"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Error      string            `json:"error,omitempty"`
	Cut        bool              `json:"cut,omitempty"` // its process was killed before it ended
}

// Processor reports every span to a function, which may be called from several goroutines at once.
func Processor(report func(Span)) sdk.SpanProcessor { return processor{report} }

type processor struct{ report func(Span) }

// OnStart implements sdk.SpanProcessor.
func (p processor) OnStart(_ context.Context, s sdk.ReadWriteSpan) { p.report(of(s)) }

// OnEnd implements sdk.SpanProcessor.
func (p processor) OnEnd(s sdk.ReadOnlySpan) { p.report(of(s)) }

// Shutdown implements sdk.SpanProcessor.
func (processor) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (processor) ForceFlush(context.Context) error { return nil }

func of(s sdk.ReadOnlySpan) Span {
	span := Span{
		Trace: s.SpanContext().TraceID().String(), ID: s.SpanContext().SpanID().String(),
		Scope: s.InstrumentationScope().Name, Name: s.Name(), Kind: trace.ValidateSpanKind(s.SpanKind()).String(),
		Start: s.StartTime(), End: s.EndTime(), Attributes: map[string]string{},
	}
	if s.Parent().IsValid() {
		span.Parent = s.Parent().SpanID().String()
	}
	for _, a := range s.Attributes() {
		span.Attributes[string(a.Key)] = a.Value.String()
	}
	if s.Status().Code == codes.Error {
		span.Error = cmp.Or(s.Status().Description, "failed")
	}
	return span
}
