package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// otlpCollector takes the spans that processes export, as an OpenTelemetry collector does.
type otlpCollector struct {
	URL string

	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
}

func startCollector(t *testing.T) *otlpCollector {
	t.Helper()
	c := &otlpCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(body, &request)) {
			c.mu.Lock()
			c.requests = append(c.requests, &request)
			c.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// services tells, by trace id, which services have spans in it.
func (c *otlpCollector) services() map[string]map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]map[string]bool{}
	for _, request := range c.requests {
		for _, resource := range request.GetResourceSpans() {
			service := ""
			for _, a := range resource.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					service = a.GetValue().GetStringValue()
				}
			}
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					id := string(span.GetTraceId())
					if found[id] == nil {
						found[id] = map[string]bool{}
					}
					found[id][service] = true
				}
			}
		}
	}
	return found
}

// text is all that was exported, for looking for what must not be in it.
func (c *otlpCollector) text() (all string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		all += protojson.Format(request)
	}
	return all
}
