package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// The private parts of the story below. None of them may be in a log, a span or a metric.
const (
	secretKey      = "key-7d0c5a1e-of-a-customer"
	secretTracking = "1Z-TRACKING-77"
	secretReason   = "gift for my neighbour"
	secretCity     = "Nowhereville"
)

// story is a service as processes of their own, and everything that operators may want to see having happened to it:
// orders placed, repeated and refused, waits, conflicts, transactions that ran again, charges that failed, were declined
// and went through, refunds, errors, and expired keys.
type story struct {
	shop
	api, worker *testkit.Running
	collector   *otlpCollector
	order       string // the first of it
	secrets     []string
}

func tellStory(t *testing.T) *story {
	t.Helper()
	s := &story{shop: openShop(t), collector: startCollector(t)}
	s.StopAPI(t) // its processes take over
	s.Env["OTEL_EXPORTER_OTLP_ENDPOINT"] = s.collector.URL
	s.Env["IDEMPOTENCY_KEY_WAIT"] = "100ms"
	s.Env["PURGE_BATCHES"], s.Env["PURGE_BATCH_SIZE"] = "1", "1"
	s.api = testkit.Process(t, "api", s.Env)
	s.worker = testkit.Process(t, "worker", s.Env)
	s.Service = s.At(s.api.URL)
	s.alice = s.As(t, "alice")
	s.secrets = []string{
		s.alice.Token, "Bearer", "Alice Ames", "High Street", "pm_card", secretKey, secretTracking, secretReason,
		secretCity, s.Env["STRIPE_API_KEY"], password(t, s.DatabaseURL),
	}
	s.orders(t)
	s.refusals(t)
	s.payments(t)
	return s
}

func (s *story) orders(t *testing.T) {
	t.Helper()
	failTransactions(t, s.Service, "40001", "DEFERRED", 1)
	body := testkit.OrderBody("pm_card_visa", shopSKU, "2")
	first := place(s.alice, secretKey, body)
	requirePlaced(t, first)
	s.order = first.Text("id")
	s.alice.PaymentStatus(s.order, "succeeded")
	requireReplay(t, first, place(s.alice, secretKey, body))
	requireRefused(t, place(s.alice, secretKey, one()), http.StatusUnprocessableEntity, "idempotency_key_reused")

	held := s.HoldStock(t, shopSKU)
	winner := placeLater(s.alice, secretKey+"-2", body)
	s.AwaitBlockedOn(t, "FROM stock")
	requireRefused(t, place(s.alice, secretKey+"-2", body), http.StatusConflict, "idempotency_key_in_progress")
	held.Commit()
	requirePlaced(t, testkit.Take(t, winner))
}

func (s *story) refusals(t *testing.T) {
	t.Helper()
	ship := `{"carrier":"DHL","tracking_number":"` + secretTracking + `"}`
	path := "/v1/orders/" + s.order + "/shipment"
	stale := s.first().Header.Get("ETag")
	requireStatus(t, http.StatusOK, post(s.alice, path, "", ship, "If-Match", stale))
	requireRefused(t, post(s.alice, path, "", ship, "If-Match", stale), http.StatusConflict, "version_conflict")
	requireRefused(t, post(s.alice, path, "", ship), http.StatusPreconditionRequired, "precondition_required")
	requireRefused(t, place(s.alice, secretKey+"-3", strings.ReplaceAll(tea(), `"DE"`, `"`+secretCity+`"`)),
		http.StatusBadRequest, "validation_failed")
	stranger := *s.alice
	stranger.Token = "not-a-token-" + s.alice.Token[:20]
	requireRefused(t, place(&stranger, secretKey, tea()), http.StatusUnauthorized, "unauthenticated")

	// An error of the database whose details show the whole row.
	s.exec(`ALTER TABLE orders ADD CONSTRAINT test_nowhere CHECK (ship_city <> '` + secretCity + `')`)
	requireRefused(t, place(s.alice, secretKey+"-4", strings.ReplaceAll(tea(), "Berlin", secretCity)),
		http.StatusInternalServerError, "internal_error")
}

func (s *story) payments(t *testing.T) {
	t.Helper()
	s.faults(fault("charge", sandbox.FaultError500, 1))
	again := s.place("pm_card_visa")
	s.alice.PaymentStatus(again, "succeeded")
	s.alice.PaymentStatus(s.place("pm_card_chargeDeclined"), "failed")
	requireStatus(t, http.StatusAccepted, post(s.alice, "/v1/orders/"+again+"/refunds", secretKey,
		`{"amount":{"amount":100,"currency":"EUR"},"reason":"`+secretReason+`"}`))
	s.jobDone("refund-charge", again)
	s.faults(fault("charge", sandbox.FaultError500Before, 0))
	waiting := s.place("pm_card_visa")
	s.jobFailed("charge-order", waiting)
	expiredKeys(t, s.Service, 3)
	runNow(t, s.Service, testkit.JobPurge)
}

// first reads the first order.
func (s *story) first() testkit.Answer { return s.shop.order(s.order) }

// requireNoSecret checks that a text shows nothing private.
func (s *story) requireNoSecret(t *testing.T, what, text string) {
	t.Helper()
	require.NotEmpty(t, text, what)
	for _, secret := range s.secrets {
		if i := strings.Index(text, secret); i >= 0 {
			require.Fail(t, what+" shows "+secret, text[max(0, i-200):min(len(text), i+200)])
		}
	}
}
