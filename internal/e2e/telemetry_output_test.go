package e2e

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// The metrics that operators rely on, each with a label set that the story must have produced.
var (
	apiMetrics = map[string][]string{
		"orders_request_duration_seconds":     {"operation", "place-order", "code", "ok"},
		"orders_idempotent_replays_total":     {"operation", "place-order"},
		"orders_idempotency_key_wait_seconds": {"outcome", "timeout"},
		"orders_transaction_retries_total":    {"sqlstate", "40001"},
		"orders_db_connections":               {"state", "max", "pool", "orders-api"},
		"orders_db_writable":                  {},
	}
	refusals = []string{
		"idempotency_key_reused", "idempotency_key_in_progress", "version_conflict", "precondition_required",
		"validation_failed", "unauthenticated", "internal_error",
	}
	workerMetrics = map[string][]string{
		"orders_outbox_jobs":                                 {},
		"orders_outbox_oldest_age_seconds":                   {"kind", "charge-order"},
		"orders_job_duration_seconds":                        {"kind", "charge-order", "outcome", "done"},
		"orders_job_dispatch_seconds":                        {"kind", "charge-order"},
		"orders_provider_call_duration_seconds":              {"call", "confirm_intent", "outcome", "answered"},
		"orders_payments_open":                               {"status", "pending"},
		"orders_payments_oldest_age_seconds":                 {},
		"orders_payment_findings_total":                      {"kind", "charge_declined"},
		"orders_idempotency_keys_purged_total":               {},
		"orders_idempotency_keys_expired":                    {},
		"orders_idempotency_keys_oldest_expired_age_seconds": {},
		"orders_db_connections":                              {"state", "max", "pool", "orders-worker"},
		"orders_db_writable":                                 {},
	}
	// Those that stand at zero until something goes wrong.
	zeroMetrics = []string{
		"orders_idempotency_purge_failures_total", "orders_job_late_results_total", "orders_payments_reconciled_total",
		"orders_refunds_open", "orders_charges_unmatched",
	}
)

// Ensure the processes, as they run in production, show every metric, log every request and job with its trace and
// outcome, export their traces to the collector that the standard variables name, and show nothing private in any of
// them, whatever goes wrong.
func TestTelemetryOfTheProcesses(t *testing.T) {
	t.Parallel()
	s := tellStory(t)
	apiText, workerText := readMetrics(t, s.api.Ops), readMetrics(t, s.worker.Ops)
	api, worker := testkit.ParseMetrics(t, strings.NewReader(apiText)), testkit.ParseMetrics(t, strings.NewReader(workerText))
	s.api.Stop()
	s.worker.Stop()

	requireMetrics(t, api, apiMetrics)
	requireMetrics(t, worker, workerMetrics)
	for _, code := range refusals {
		require.Positive(t, api.Value("orders_request_duration_seconds", "code", code), code)
	}
	for _, outcome := range []string{"answered", "refused", "key_unusable"} {
		calls := worker.Value("orders_provider_call_duration_seconds", "call", "confirm_intent", "outcome", outcome)
		require.Positive(t, calls, outcome)
	}
	for _, name := range zeroMetrics {
		require.Contains(t, worker, name)
	}
	requireBoundedLabels(t, api)
	requireBoundedLabels(t, worker)
	keepSample(t, "api", apiText)
	keepSample(t, "worker", workerText)

	s.requireLogged(t, s.api.Output(), "request")
	s.requireLogged(t, s.worker.Output(), "job")
	s.requireNoSecret(t, "log of the API", s.api.Output())
	s.requireNoSecret(t, "log of the worker", s.worker.Output())
	s.requireNoSecret(t, "exported spans", s.collector.text())
	s.requireNoSecret(t, "metrics", apiText+workerText)
	both := func(services map[string]bool) bool { return services["orders-api"] && services["orders-worker"] }
	require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(s.collector.services())), both),
		"no exported trace goes from the API to the worker")
}

func readMetrics(t *testing.T, ops string) string {
	t.Helper()
	client := http.Client{Timeout: testkit.Wait}
	response, err := client.Get(ops + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

func requireMetrics(t *testing.T, m testkit.Metrics, wanted map[string][]string) {
	t.Helper()
	for name, labels := range wanted {
		require.Positive(t, m.Value(name, labels...), "%s%v", name, labels)
	}
}

// requireBoundedLabels checks that no label takes its values from what callers send: every value is one of a few words.
func requireBoundedLabels(t *testing.T, m testkit.Metrics) {
	t.Helper()
	known := []string{"operation", "code", "outcome", "sqlstate", "state", "pool", "kind", "call", "status"}
	word := regexp.MustCompile(`^[a-zA-Z][a-z_-]{0,40}$|^[0-9A-Z]{5}$`)
	for name, family := range m {
		if !strings.HasPrefix(name, "orders_") {
			require.Regexp(t, `^(go|process|target|promhttp)_`, name, "a family that nobody has asked for")
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				require.Contains(t, known, label.GetName(), name)
				require.Regexp(t, word, label.GetValue(), "%s{%s}", name, label.GetName())
			}
		}
	}
}

// requireLogged checks that every line is JSON and that the lines of a kind tell trace, operation and outcome.
func (s *story) requireLogged(t *testing.T, log, kind string) {
	t.Helper()
	lines := linesWith(linesOf(t, log), kind)
	require.NotEmpty(t, lines)
	for _, l := range lines {
		require.Regexp(t, `^[0-9a-f]{32}$`, l["trace_id"], "%v", l)
		require.NotEmpty(t, l["operation"], "%v", l)
		if kind == "request" {
			require.NotEmpty(t, l["code"], "%v", l)
		} else {
			require.NotEmpty(t, l["outcome"], "%v", l)
		}
	}
}

// samples are readings of /metrics that ops/ tests its dashboard and its alerts against.
const samples = "../../ops/testdata"

// keepSample checks that the kept reading of a process has the same metrics and labels as the present one. With
// UPDATE_SAMPLES=1 it keeps the present one instead.
func keepSample(t *testing.T, process, text string) {
	t.Helper()
	path := filepath.Join(samples, process+".prom")
	if os.Getenv("UPDATE_SAMPLES") == "1" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, shapes(t, text), shapes(t, string(kept)),
		"/metrics has changed; UPDATE_SAMPLES=1 go test ./internal/e2e -run TestTelemetryOfTheProcesses")
}

// shapes is the service's own metrics, each with the names of its labels.
func shapes(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	for name, family := range testkit.ParseMetrics(t, strings.NewReader(text)) {
		for _, series := range family.GetMetric() {
			var labels []string
			for _, l := range series.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if strings.HasPrefix(name, "orders_") {
				all = append(all, name+"{"+strings.Join(labels, ",")+"}")
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func password(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	p, _ := u.User.Password()
	require.NotEmpty(t, p)
	return p
}
