package telemetry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// FuzzTraceContext: the trace that is taken over is one that the header names, and a header that names none gives none.
func FuzzTraceContext(f *testing.F) {
	for _, seed := range []string{
		"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-0000000000000000-00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", "00-zz",
	} {
		f.Add(seed, "a=b")
		f.Add(seed, strings.Repeat("a=b,", 40))
	}
	propagator := (&Telemetry{}).Propagator()
	f.Fuzz(func(t *testing.T, parent, state string) {
		got := trace.SpanContextFromContext(propagator.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent, "tracestate": state}))
		if !got.IsValid() {
			return
		}
		require.Contains(t, parent, got.TraceID().String())
		require.Contains(t, parent, got.SpanID().String())
		require.LessOrEqual(t, got.TraceState().Len(), 32)
		sent := propagation.MapCarrier{}
		propagator.Inject(trace.ContextWithRemoteSpanContext(t.Context(), got), sent)
		again := trace.SpanContextFromContext(propagator.Extract(t.Context(), sent))
		require.True(t, got.Equal(again))
	})
}
