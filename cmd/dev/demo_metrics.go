package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.com/orders/client/openapi"
)

// readMetrics shows what the tour has left at /metrics of the API and of the worker, and compares it with what the
// callers, the database and the provider know.
func readMetrics(ctx context.Context, s *step) error {
	if err := s.atRest(ctx); err != nil {
		return err
	}
	api, err := scrape(ctx, s.ops.URL())
	if err != nil {
		return err
	}
	worker, err := scrape(ctx, s.worker.ops(ctx))
	if err != nil {
		return err
	}
	const requests = "orders_request_duration_seconds_count"

	placed := s.metric(api, requests, "operation", "place-order", "code", "ok")
	replays := s.metric(api, "orders_idempotent_replays_total", "operation", "place-order")
	s.check(placed-replays == s.orders(ctx), "orders accepted, less the answers that were given again, are the %d orders of the database",
		s.orders(ctx))
	for _, code := range []openapi.ProblemCode{
		openapi.ProblemCodeVersionConflict, openapi.ProblemCodeIdempotencyKeyReused, openapi.ProblemCodeInsufficientStock,
	} {
		told := s.toldOf(code)
		s.check(s.metric(api, requests, "code", string(code)) == told && told > 0, "as often as callers were told: %d", told)
	}
	waits := s.metric(api, "orders_idempotency_key_wait_seconds_count", "outcome", "turn")
	s.check(waits > 0, "duplicates waited for the one that worked, and not in vain")
	s.check(s.metric(api, requests, "code", string(openapi.ProblemCodeInternalError)) == 0, "no bug was met")

	const findings = "orders_payment_findings_total"
	s.check(s.metric(worker, findings, "kind", "charge_declined") == 1, "one card was declined")
	s.check(s.metric(worker, findings, "kind", "refund_failed_late") == 1, "one refund failed after it had succeeded")
	amiss := s.metric(worker, findings, "kind", "second_charge") + s.metric(worker, findings, "kind", "mismatch")
	s.check(amiss == 0, "no order was charged twice, and no answer was about something else")
	open := s.metric(worker, "orders_payments_open") + s.metric(worker, "orders_refunds_open") +
		s.metric(worker, "orders_outbox_oldest_age_seconds")
	s.check(open == 0, "nothing waits: the outbox is empty, no payment and no refund is open")
	return nil
}

// toldOf is how many answers of the tour so far had a problem's code.
func (d *demo) toldOf(code openapi.ProblemCode) (n int) {
	for _, s := range d.told {
		n += count(s.passed, func(x passed) bool { return x.code == code })
	}
	return n
}

// metric shows and returns the sum of a metric's series with these labels, pairs of name and value: of a histogram's
// _count, how many it has observed.
func (s *step) metric(of map[string]*dto.MetricFamily, name string, labels ...string) int {
	sum := 0.0
	for _, series := range of[strings.TrimSuffix(name, "_count")].GetMetric() {
		if hasLabels(series, labels) {
			sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
		}
	}
	var selector []string
	for i := 0; i+1 < len(labels); i += 2 {
		selector = append(selector, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	shown := name
	if len(selector) > 0 {
		shown += "{" + strings.Join(selector, ",") + "}"
	}
	s.story.line("metrics", "%s %g", shown, sum)
	return int(sum)
}

func hasLabels(series *dto.Metric, want []string) bool {
	values := map[string]string{}
	for _, l := range series.GetLabel() {
		values[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(want); i += 2 {
		if values[want[i]] != want[i+1] {
			return false
		}
	}
	return true
}

// scrape reads the metrics of a process, as Prometheus does.
func scrape(ctx context.Context, ops string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, ops+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}
