package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/httpapi"
	"example.com/orders/internal/infra/telemetry"
)

// startBroken starts a boundary without use cases: every request that gets through it panics.
func startBroken(t *testing.T, s *testkit.Service, log *journal) *testkit.Service {
	t.Helper()
	part := s.Metrics["api"]
	auth, err := httpapi.NewJWTAuthenticator(t.Context(), httpapi.JWTConfig{
		Issuer: s.Env["AUTH_ISSUER"], Audience: s.Env["AUTH_AUDIENCE"], JWKSURL: s.Env["AUTH_JWKS_URL"],
	}, part.Metrics, testkit.Log())
	require.NoError(t, err)
	handler, err := httpapi.New(nil, auth, nil, part.Metrics, telemetry.NewLog(log, "orders-test"))
	require.NoError(t, err)
	server := httptest.NewServer(otelhttp.NewHandler(handler, "api", otelhttp.WithTracerProvider(part.Traces)))
	t.Cleanup(server.Close)
	return s.At(server.URL)
}

// Ensure a panic is logged once, with its trace, its operation and where it happened, and that neither the log nor the
// answer shows anything of the request.
func TestTelemetryOfAPanic(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	log := &journal{}
	alice := startBroken(t, s, log).As(t, "alice")
	answer := place(alice, secretKey, tea())
	requireRefused(t, answer, http.StatusInternalServerError, "internal_error")
	require.NotContains(t, string(answer.Body), "nil pointer")

	panics := linesWith(linesOf(t, log.text()), "panic")
	require.Len(t, panics, 1)
	require.Equal(t, answer.Text("trace_id"), panics[0]["trace_id"])
	require.Equal(t, "place-order", panics[0]["operation"])
	require.Contains(t, panics[0]["stack"], "PlaceOrder")
	for _, secret := range []string{alice.Token, "Bearer", "Alice Ames", "High Street", "pm_card", secretKey} {
		require.NotContains(t, log.text(), secret)
	}
	m := scrape(t, s.Metrics["api"])
	require.EqualValues(t, 1, m.Value("orders_request_duration_seconds", "operation", "place-order", "code", "internal_error"))
}
