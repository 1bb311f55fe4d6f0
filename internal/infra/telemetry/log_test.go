package telemetry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ensure a duration in the log says its unit: in seconds, under a name that ends with it, wherever it came from.
func TestLogWritesDurationsInSeconds(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := NewLog(&out, "test").With("limit", 2*time.Minute)
	log.Info("request", "took", 1500*time.Millisecond, "n", 1)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(out.String()), &line))
	require.EqualValues(t, 1.5, line["took_seconds"])
	require.EqualValues(t, 120, line["limit_seconds"])
	require.NotContains(t, line, "took")
	require.EqualValues(t, 1, line["n"])
}
