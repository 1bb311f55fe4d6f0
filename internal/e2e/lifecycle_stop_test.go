package e2e

import (
	"bytes"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// startProcesses replaces the API of a shop by a process of its own.
func (s *shop) startProcess() *testkit.Running {
	s.t.Helper()
	s.StopAPI(s.t)
	p := testkit.Process(s.t, "api", s.Env)
	s.Service = s.At(p.URL)
	s.alice = s.As(s.t, "alice")
	return p
}

// placeHeld places an order that is held in the middle of its transaction.
func (s *shop) placeHeld(key string) (held *testkit.Held, answer <-chan testkit.Answer) {
	s.t.Helper()
	held = s.HoldStock(s.t, shopSKU)
	answer = placeLater(s.alice, key, testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	s.AwaitBlockedOn(s.t, "FROM stock")
	return held, answer
}

// Ensure an API that is asked to stop is not ready any more and takes no new connection, answers what it has begun, and
// then ends without an error.
func TestLifecycleStopFinishesRequests(t *testing.T) {
	t.Parallel()
	s := openShop(t, "SHUTDOWN_TIMEOUT", "5m")
	p := s.startProcess()
	held, answer := s.placeHeld("k")
	p.Terminate()
	awaitReady(t, p, http.StatusServiceUnavailable)
	testkit.Eventually(t, "refused connection", func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(p.URL, "http://"), testkit.Wait)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	require.Empty(t, answer, "answered while it was held")
	held.Commit()
	requirePlaced(t, testkit.Take(t, answer))
	require.NoError(t, p.Wait(), p.Output())
	requireStored(t, s.Service, 1)
}

// Ensure a collector of traces that takes none keeps no process from stopping in time and without an error.
func TestLifecycleStopWithoutACollector(t *testing.T) {
	t.Parallel()
	s := openShop(t, "SHUTDOWN_TIMEOUT", "12s")        // three quarters are more than net/http waits for unused connections
	collector, err := net.Listen("tcp", "127.0.0.1:0") // no connection is accepted
	require.NoError(t, err)
	t.Cleanup(func() { collector.Close() })
	s.Env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://" + collector.Addr().String()
	api, worker := s.startProcess(), testkit.Process(t, "worker", s.Env)
	s.placePaid("pm_card_visa")
	worker.Stop()
	api.Stop()
}

// Ensure an API whose request does not end stops all the same within its bound, that it says so, and that the request
// has left nothing.
func TestLifecycleStopIsBounded(t *testing.T) {
	t.Parallel()
	s := openShop(t, "SHUTDOWN_TIMEOUT", "1s")
	p := s.startProcess()
	held, answer := s.placeHeld("k")
	p.Terminate()
	require.Error(t, p.Wait())
	require.Contains(t, p.Output(), "requests were cut off")
	require.NotEqual(t, http.StatusCreated, testkit.Take(t, answer).Status)
	held.Commit()
	requireStored(t, s.Service, 0)

	s.startProcess()
	requirePlaced(t, place(s.alice, "k", testkit.OrderBody("pm_card_visa", shopSKU, "2")))
}

// Ensure a second signal ends a process at once, while a request is still held.
func TestLifecycleSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, "SHUTDOWN_TIMEOUT", "10m")
	p := s.startProcess()
	held, answer := s.placeHeld("k")
	p.Terminate()
	awaitReady(t, p, http.StatusServiceUnavailable)
	p.Terminate()
	require.ErrorContains(t, p.Wait(), "terminated")
	require.Zero(t, testkit.Take(t, answer).Status)
	held.Commit()
	requireStored(t, s.Service, 0)
}

// Ensure a worker that is asked to stop lets a job finish that the provider answers in time.
func TestLifecycleStopFinishesJobs(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "SHUTDOWN_TIMEOUT", "5m", "JOB_TIMEOUT", "5m", "JOB_RESCUE_AFTER", "10m", "PROVIDER_TIMEOUT", "4m")
	p := testkit.Process(t, "worker", s.Env)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.held(1)
	p.Terminate()
	awaitReady(t, p, http.StatusServiceUnavailable)
	require.Equal(t, "pending", s.payment(order).Text("status"))
	s.Sandbox.ClearFaults()
	require.NoError(t, p.Wait(), p.Output())
	require.Equal(t, "succeeded", s.payment(order).Text("status"))
	require.Len(t, s.attempts("confirm", order), 1)
}

// Ensure a worker whose job does not end stops within its bound, without an error, and leaves the job to be taken up at
// once by another, which pays the order without a second charge.
func TestLifecycleStopLeavesLongJobsToOthers(t *testing.T) {
	t.Parallel()
	s := openShopWithoutEvents(t, "SHUTDOWN_TIMEOUT", "12s", "JOB_TIMEOUT", "5m", "JOB_RESCUE_AFTER", "10m", "PROVIDER_TIMEOUT", "4m")
	p := testkit.Process(t, "worker", s.Env)
	s.faults(fault("charge", sandbox.FaultHold, 1))
	order := s.place("pm_card_visa")
	s.held(1)
	p.Terminate()
	require.NoError(t, p.Wait(), p.Output())
	require.Equal(t, 1, s.Count(t, jobOf+` AND state IN ('available', 'retryable', 'scheduled')`, "charge-order", order))
	s.Sandbox.ClearFaults()
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "succeeded")
	require.Equal(t, 1, s.charged(order))
	requireSame(t, confirmKey(order), s.attempts("confirm", order))
}

// Ensure that what starts also ends: after a stop no goroutine of the service is left, in the API or in the worker.
func TestLifecycleStopLeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	testkit.MarkGoroutines(t)
	api := s.Another(t)
	worker := s.AnotherWorker(t)
	s.alice = api.As(t, "alice")
	s.placePaid("pm_card_visa")
	require.NotEmpty(t, ours(t))
	api.StopAPI(t)
	worker.StopWorker(t)
	testkit.Eventually(t, "end of all goroutines", func() bool { return len(ours(t)) == 0 })
}

// ours is the goroutines that this test has started, without those of its own client and of its own connections.
func ours(t *testing.T) (groups []string) {
	t.Helper()
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(group, `"`+t.Name()+`"`) {
			continue
		}
		service := false
		for _, part := range []string{
			"example.com/orders/internal/boot", "example.com/orders/internal/infra", "riverqueue/river", "pgxpool.(*Pool)",
			"httprc", "net/http.(*Server)", "net/http.(*conn)", "opentelemetry",
		} {
			service = service || strings.Contains(group, part)
		}
		if service && !strings.Contains(group, "tRunner") {
			groups = append(groups, group)
		}
	}
	return groups
}
