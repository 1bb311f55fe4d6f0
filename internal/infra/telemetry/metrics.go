package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/orders/internal/app"
)

// Metrics holds the service's own instruments, named as Prometheus shows them. docs/runbooks and the
// dashboard in ops/ use the same names. No label is called job or instance: Prometheus sets those itself.
type Metrics struct {
	meter metric.Meter

	requests     metric.Float64Histogram // orders_request_duration_seconds{operation, code}
	replays      metric.Int64Counter     // orders_idempotent_replays_total{operation}
	keyWait      metric.Float64Histogram // orders_idempotency_key_wait_seconds{outcome}
	txRetries    metric.Int64Counter     // orders_transaction_retries_total{sqlstate}
	jobs         metric.Float64Histogram // orders_job_duration_seconds{kind, outcome}
	dispatch     metric.Float64Histogram // orders_job_dispatch_seconds{kind}
	late         metric.Int64Counter     // orders_job_late_results_total
	provider     metric.Float64Histogram // orders_provider_call_duration_seconds{call, outcome}
	purged       metric.Int64Counter     // orders_idempotency_keys_purged_total
	reconciled   metric.Int64Counter     // orders_payments_reconciled_total
	purgeFailure metric.Int64Counter     // orders_idempotency_purge_failures_total
	findings     metric.Int64Counter     // orders_payment_findings_total{kind}
	keysSkipped  metric.Int64Counter     // orders_signing_keys_skipped_total
}

func newMetrics(m metric.Meter) (*Metrics, error) {
	metrics := &Metrics{meter: m}
	seconds := metric.WithUnit("s")
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	var errs []error
	histogram := func(name, about string, more ...float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithDescription(about), seconds,
			metric.WithExplicitBucketBoundaries(slices.Concat(buckets, more)...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, about string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}
	metrics.requests = histogram("orders.request.duration", "Duration of requests, by operation and problem code (ok: no problem).")
	metrics.replays = counter("orders.idempotent.replays", "Stored responses replayed for an idempotency key.")
	metrics.keyWait = histogram("orders.idempotency.key.wait", "Time that duplicates waited for the first request with their key.")
	metrics.txRetries = counter("orders.transaction.retries", "Transactions retried, by SQLSTATE.")
	metrics.jobs = histogram("orders.job.duration", "Duration of job runs, by kind and outcome.")
	metrics.dispatch = histogram("orders.job.dispatch", "Time from a job's due time to its run.", 60, 300, 1800, 7200, 21600)
	metrics.provider = histogram("orders.provider.call.duration", "Duration of calls to the payment provider, by call and outcome.")
	metrics.late = counter("orders.job.late.results", "Results dropped because another run had taken the job over.")
	metrics.purged = counter("orders.idempotency.keys.purged", "Expired idempotency keys deleted.")
	metrics.purgeFailure = counter("orders.idempotency.purge.failures", "Failed runs of purge-idempotency-keys.")
	metrics.keysSkipped = counter("orders.signing.keys.skipped", "Signing keys of the issuer that could not be used.")
	metrics.reconciled = counter("orders.payments.reconciled", "Charges and refunds that reconcile-payments enqueued again.")
	metrics.findings = counter("orders.payment.findings", "Payment findings that a person should check, by kind; see docs/runbooks.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// Counters start with an explicit 0: Prometheus does not see an increase in a counter that first appears with a 1.
	for _, c := range []metric.Int64Counter{
		metrics.late, metrics.purged, metrics.purgeFailure, metrics.reconciled, metrics.keysSkipped,
	} {
		c.Add(context.Background(), 0)
	}
	for _, kind := range app.FindingKinds() {
		metrics.findings.Add(context.Background(), 0, labels("kind", string(kind)))
	}
	return metrics, nil
}

// Request counts an answered request; code is the problem code, or ok.
func (m *Metrics) Request(ctx context.Context, operation, code string, replayed bool, took time.Duration) {
	m.requests.Record(ctx, took.Seconds(), labels("operation", operation, "code", code))
	if replayed {
		m.replays.Add(ctx, 1, labels("operation", operation))
	}
}

// KeyWait counts a duplicate's wait; outcome is turn (the wait ended) or timeout.
func (m *Metrics) KeyWait(ctx context.Context, outcome string, took time.Duration) {
	m.keyWait.Record(ctx, took.Seconds(), labels("outcome", outcome))
}

// TransactionRetry counts a transaction that runs again.
func (m *Metrics) TransactionRetry(ctx context.Context, sqlState string) {
	m.txRetries.Add(ctx, 1, labels("sqlstate", sqlState))
}

// Job counts one run of a job and how long after its due time it started.
func (m *Metrics) Job(ctx context.Context, kind, outcome string, late, took time.Duration) {
	m.jobs.Record(ctx, took.Seconds(), labels("kind", kind, "outcome", outcome))
	m.dispatch.Record(ctx, max(0, late.Seconds()), labels("kind", kind))
}

// LateResults counts results that were dropped because another run had taken the job over.
func (m *Metrics) LateResults(ctx context.Context, jobs int) { m.late.Add(ctx, int64(jobs)) }

// Finding counts a payment finding.
func (m *Metrics) Finding(ctx context.Context, kind string) {
	m.findings.Add(ctx, 1, labels("kind", kind))
}

// ProviderCall counts a call to the provider; outcome is answered, refused, rate_limited, key_unusable, mismatch or
// unknown.
func (m *Metrics) ProviderCall(ctx context.Context, call, outcome string, took time.Duration) {
	m.provider.Record(ctx, took.Seconds(), labels("call", call, "outcome", outcome))
}

// Purged counts the keys that a run removed, and whether it failed.
func (m *Metrics) Purged(ctx context.Context, keys int64, failed bool) {
	m.purged.Add(ctx, keys)
	if failed {
		m.purgeFailure.Add(ctx, 1)
	}
}

// Reconciled counts the charges and refunds that reconcile-payments enqueued again.
func (m *Metrics) Reconciled(ctx context.Context, payments int) {
	m.reconciled.Add(ctx, int64(payments))
}

// SigningKeySkipped counts a key of the issuer that cannot be used.
func (m *Metrics) SigningKeySkipped(ctx context.Context) { m.keysSkipped.Add(ctx, 1) }

// Gauge is a gauge whose values are read at each request to /metrics.
type Gauge struct {
	Name  string
	About string
	Unit  string   // such as s; empty: a number of things
	Label string   // the label of the gauge's values; empty: one value, under the empty name
	Fixed []string // further labels, pairs of name and value
	Read  func(ctx context.Context) (map[string]float64, error)
}

// Gauges adds gauges that are read one after another, in their order and within limit for all of them. After a failure
// the remaining gauges are skipped, because they would fail too and delay /metrics.
func (m *Metrics) Gauges(limit time.Duration, gauges ...Gauge) error {
	instruments := make([]metric.Float64ObservableGauge, len(gauges))
	observables := make([]metric.Observable, len(gauges))
	for i, g := range gauges {
		gauge, err := m.meter.Float64ObservableGauge(g.Name, metric.WithDescription(g.About), metric.WithUnit(g.Unit))
		if err != nil {
			return fmt.Errorf("gauge %s: %w", g.Name, err)
		}
		instruments[i], observables[i] = gauge, gauge
	}
	_, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		for i, g := range gauges {
			if err := g.observe(ctx, o, instruments[i]); err != nil {
				return err
			}
		}
		return nil
	}, observables...)
	return err
}

func (g Gauge) observe(ctx context.Context, o metric.Observer, instrument metric.Float64ObservableGauge) error {
	values, err := g.Read(ctx)
	if err != nil {
		return fmt.Errorf("gauge %s: %w", g.Name, err)
	}
	for value, n := range values {
		pairs := g.Fixed
		if g.Label != "" {
			pairs = append([]string{g.Label, value}, g.Fixed...)
		}
		o.ObserveFloat64(instrument, n, labels(pairs...))
	}
	return nil
}

func labels(pairs ...string) metric.MeasurementOption {
	attributes := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		attributes = append(attributes, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
