package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/telemetry"
)

// journal is a log that a test reads.
type journal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.Write(p)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.String()
}

// keepJournal makes what is started from now on write its log, as production writes it, into a journal.
func keepJournal(s *testkit.Service) *journal {
	j := &journal{}
	s.Log = telemetry.NewLog(j, "orders-test")
	return j
}

// logLine is one line of a log.
type logLine map[string]any

// linesOf reads a log: every line must be JSON.
func linesOf(t testing.TB, log string) (lines []logLine) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(log)))
	for {
		var l logLine
		err := d.Decode(&l)
		if err == io.EOF {
			return lines
		}
		require.NoError(t, err, log)
		lines = append(lines, l)
	}
}

// linesWith keeps the lines with a message.
func linesWith(lines []logLine, message string) (kept []logLine) {
	for _, l := range lines {
		if l[slog.MessageKey] == message {
			kept = append(kept, l)
		}
	}
	return kept
}

// scrape reads the metrics of a part of the service.
func scrape(t testing.TB, part *telemetry.Telemetry) testkit.Metrics {
	t.Helper()
	w := httptest.NewRecorder()
	part.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return testkit.ParseMetrics(t, w.Body)
}
