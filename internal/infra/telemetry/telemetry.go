// Package telemetry makes the traces and the metrics of a process: spans go to an OTLP collector when the standard
// environment variables name one, metrics are read at /metrics.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/infra/config"
)

// Telemetry is a process's tracer and meter providers. They are passed explicitly, not set globally.
type Telemetry struct {
	Traces  *trace.TracerProvider
	Meters  *metric.MeterProvider
	Metrics *Metrics

	registry *prometheus.Registry
	recorded bool // spans are exported; otherwise they only carry their ids
}

// Start makes the telemetry of the process that service names. Spans are exported when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; without them they still carry the trace ids of logs and problems.
func Start(ctx context.Context, service string, processors ...trace.SpanProcessor) (*Telemetry, error) {
	described, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []trace.TracerProviderOption{trace.WithResource(described)}
	for _, p := range processors {
		options = append(options, trace.WithSpanProcessor(p))
	}
	export, err := hasCollector("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if err != nil {
		return nil, err
	}
	if export {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		options = append(options, trace.WithBatcher(exporter))
	}
	recorded := export || len(processors) > 0
	if !recorded {
		options = append(options, trace.WithSampler(trace.NeverSample()))
	}
	t := &Telemetry{
		Traces: trace.NewTracerProvider(options...), recorded: recorded, registry: prometheus.NewRegistry(),
	}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics reader: %w", err)
	}
	t.Meters = metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(described))
	if t.Metrics, err = newMetrics(t.Meters.Meter("example.com/orders")); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return t, nil
}

// hasCollector reports whether one of the variables names a collector. The exporter itself would silently replace an
// invalid URL by its default.
func hasCollector(variables ...string) (yes bool, err error) {
	for _, name := range variables {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		if err := config.CheckWebURL(name, v); err != nil {
			return false, err
		}
		yes = true
	}
	return yes, nil
}

// Statements is the provider of a span for each SQL statement; nil where spans go nowhere, since making so many costs a
// tenth of a request.
func (t *Telemetry) Statements() oteltrace.TracerProvider {
	if !t.recorded {
		return nil
	}
	return t.Traces
}

// Handler serves the metrics in Prometheus' format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Propagator propagates traces between processes as W3C Trace Context.
func (t *Telemetry) Propagator() propagation.TextMapPropagator { return propagation.TraceContext{} }

// stopWait bounds how long a stop waits for a collector.
const stopWait = 2 * time.Second

// Stop sends what is still to be sent. A collector that does not take it is reported where all its failures are, to
// OpenTelemetry's error handler: the process has done its work.
func (t *Telemetry) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	if err := errors.Join(t.Traces.Shutdown(ctx), t.Meters.Shutdown(ctx)); err != nil {
		otel.Handle(fmt.Errorf("last spans: %w", err))
	}
	return nil
}
