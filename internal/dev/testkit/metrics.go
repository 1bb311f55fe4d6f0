package testkit

import (
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// Metrics is one reading of /metrics.
type Metrics map[string]*dto.MetricFamily

// ParseMetrics reads metrics in Prometheus' text format.
func ParseMetrics(t TB, r io.Reader) Metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(r)
	require.NoError(t, err)
	return families
}

// ReadMetrics reads the metrics of a process whose listener for operators is at ops.
func ReadMetrics(t TB, ops string) Metrics {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ops+"/metrics", nil)
	require.NoError(t, err)
	response, err := (&http.Client{Timeout: Wait}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	return ParseMetrics(t, response.Body)
}

// Value is the sum of a metric's series with these labels, pairs of name and value: their values, or for a histogram how
// many were observed. Its name may end with _count.
func (m Metrics) Value(name string, labels ...string) (sum float64) {
	for _, series := range m[strings.TrimSuffix(name, "_count")].GetMetric() {
		if hasLabels(series, labels) {
			sum += series.GetGauge().GetValue() + series.GetCounter().GetValue() +
				float64(series.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func hasLabels(series *dto.Metric, labels []string) bool {
	values := map[string]string{}
	for _, l := range series.GetLabel() {
		values[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if values[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
