package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// Ensure an event that is delivered three times is answered alike, and leaves one id and one job.
func TestEventsDeliveredThreeTimesLeaveOneJob(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	event := s.anEvent(s.place("pm_card_visa"))
	for range 3 {
		requireReceived(t, s.deliver(event))
	}
	s.requireEvents(1, 1)
}

// Ensure of two deliveries of one event at once the second waits for the first: it leaves no job where the first was
// committed, and goes on where the first was not.
func TestEventsDeliveredAtOnceLeaveOneJob(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the first is committed": false, "the first is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			event := s.anEvent(s.place("pm_card_visa"))
			send := func() testkit.Answer { return s.deliver(event) }
			jobs := s.Begin(t).Exec(`LOCK TABLE river_job IN SHARE MODE`)
			start, first := later(send)
			start()
			s.AwaitBlockedOn(t, "river_job")
			start, second := later(send)
			start()
			s.AwaitBlocked(t, 2)
			if lost {
				s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
					AND application_name = 'orders-api' AND wait_event_type = 'Lock' AND query LIKE '%river_job%'`)
				requireStatus(t, http.StatusServiceUnavailable, first())
			}
			jobs.Rollback()
			if !lost {
				requireReceived(t, first())
			}
			requireReceived(t, second())
			s.requireEvents(1, 1)
		})
	}
}

// Ensure an event counts only under one signature of the provider's over its very body, made not too long ago, and that
// any other is answered 400 and changes nothing.
func TestEventsForgedOrLateChangeNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	event, other := s.anEvent(order), s.anEvent(order)
	good := signature(event, sandbox.DefaultEventSecret, 0)
	for name, lines := range map[string][]string{
		"no signature": nil, "empty": {""}, "no scheme": {"t=1"}, "garbage": {"\"'; DROP TABLE orders"},
		"another secret": {signature(event, "whsec_of_a_forger", 0)}, "an empty secret": {signature(event, "", 0)},
		"another body": {signature(other, sandbox.DefaultEventSecret, 0)},
		"too old":      {signature(event, sandbox.DefaultEventSecret, 6*time.Minute)},
		"repeated":     {good, good}, "scheme v0": {strings.Replace(good, "v1=", "v0=", 1)},
	} {
		a := s.deliverSigned(event, lines...)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, "invalid_signature", a.Code(), name)
	}
	s.requireEvents(0, 0)
	require.EqualValues(t, 10, scrape(t, s.Metrics["api"]).Value("orders_request_duration_seconds",
		"operation", "receive-provider-event", "code", "invalid_signature"))
	requireReceived(t, s.deliverSigned(event, signature(event, sandbox.DefaultEventSecret, 4*time.Minute)))
	s.requireEvents(1, 1)
}

// Ensure the secret of the provider's endpoint can be rotated without a lost event: while two are configured either one
// counts, and a signature by both counts wherever one of them is known.
func TestEventsWhileTheSecretIsRotated(t *testing.T) {
	t.Parallel()
	s := openShop(t, "STRIPE_WEBHOOK_SECRET", "whsec_old", "STRIPE_WEBHOOK_SECRET_NEXT", "whsec_new")
	order := s.place("pm_card_visa")
	deliver := func(to shop, secrets ...string) testkit.Answer {
		event := s.anEvent(order)
		line := signature(event, secrets[0], 0)
		for _, secret := range secrets[1:] {
			_, second, _ := strings.Cut(signature(event, secret, 0), ",")
			line += "," + second
		}
		return to.deliverSigned(event, line)
	}
	requireReceived(t, deliver(s, "whsec_old"))
	requireReceived(t, deliver(s, "whsec_new"))
	requireStatus(t, http.StatusBadRequest, deliver(s, "whsec_older"))

	after := s
	after.Service = s.Another(t, "STRIPE_WEBHOOK_SECRET", "whsec_new", "STRIPE_WEBHOOK_SECRET_NEXT", "")
	requireReceived(t, deliver(after, "whsec_old", "whsec_new"))
	requireStatus(t, http.StatusBadRequest, deliver(after, "whsec_old"))
	s.requireEvents(3, 3)
}

// Ensure an event is answered 200 only when its id and its job are committed, together.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestEventsAreAnsweredAfterTheCommit(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	jobs := s.Begin(t).Exec(`LOCK TABLE river_job IN SHARE MODE`)
	answered := testkit.Together(1, func(int) testkit.Answer { return s.deliver(s.anEvent(order)) })
	s.AwaitBlockedOn(t, "river_job")
	require.Empty(t, answered)
	s.requireEvents(0, 0)
	jobs.Rollback()
	requireReceived(t, testkit.Take(t, answered))
	s.requireEvents(1, 1)
}

// Ensure a COMMIT that is lost, or whose answer is lost, makes the provider deliver the event again, which leaves one job.
func TestEventsWhoseCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]testkit.CommitFault{"lost": testkit.LoseCommit, "answer lost": testkit.LoseReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			proxy := testkit.StartProxy(t, s.DatabaseURL)
			behind := s
			behind.Service = s.Another(t, "DATABASE_URL", proxy.URL)
			event := s.anEvent(s.place("pm_card_visa"))
			commit := proxy.OnNextCommit(fault)
			requireRefused(t, behind.deliver(event), http.StatusServiceUnavailable, "outcome_unknown")
			testkit.Take(t, commit.Reached)
			requireReceived(t, behind.deliver(event))
			s.requireEvents(1, 1)
		})
	}
}

// Ensure an event that finds the database gone is refused with a 5xx and received when the provider delivers it again.
func TestEventsWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	way := testkit.StartProxy(t, s.DatabaseURL)
	behind := s.Another(t, "DATABASE_URL", way.URL, "DB_ACQUIRE_TIMEOUT", "1s")
	s.Sandbox.SetEventsURL(behind.URL + testkit.EventsPath)
	order := s.place("pm_card_visa")
	way.Cut()
	s.StartWorker(t)
	s.jobDone("charge-order", order)
	testkit.Eventually(t, "a refused delivery", func() bool { return len(statuses(s.Sandbox.Deliveries())) > 0 })
	s.requireEvents(0, 0)
	require.NoError(t, way.Mend())
	s.delivered()
	require.Contains(t, statuses(s.Sandbox.Deliveries()), http.StatusServiceUnavailable)
	require.Contains(t, statuses(s.Sandbox.Deliveries()), http.StatusOK)
	require.Positive(t, s.Count(t, `provider_events WHERE type = 'payment_intent.succeeded'`))
	s.settled()
}

// statuses is the answers to deliveries, each once.
func statuses(all []sandbox.Delivery) (seen []int) {
	for _, d := range all {
		seen = append(seen, d.Status)
	}
	return seen
}

// Ensure an event that overtakes the commit of what it tells is harmless: its job records the charge, and the run that asked
// for it finds that done.
func TestEventsBeforeTheirOwnCommit(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.faults(fault(sandbox.OpConfirmIntent, sandbox.FaultHold, 1))
	s.StartWorker(t)
	order := s.place("pm_card_visa")
	s.held(1)
	s.alice.PaymentStatus(order, "succeeded")
	recorded := s.payment(order).Header.Get("ETag")
	s.Sandbox.ClearFaults()
	s.jobDone("charge-order", order)
	s.settled()
	require.Equal(t, recorded, s.payment(order).Header.Get("ETag"))
	require.Equal(t, 1, s.charged(order))
	require.Zero(t, s.Count(t, `river_job WHERE cardinality(errors) > 0`))
}

// Ensure a refund that fails after it has succeeded becomes failed, that its amount is back in the balance and that an
// operator hears of it, once, however often the provider tells.
func TestEventsOfARefundThatFailsLater(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	requireStatus(t, http.StatusAccepted, s.refund(order, "one", shopTotal))
	s.jobDone("refund-charge", order)
	s.settled()
	require.Equal(t, "succeeded", s.refundStatus(order))
	require.Equal(t, "refund_exceeds_charge", s.refund(order, "two", 1).Code())

	s.faults(fault(sandbox.OpEvent, sandbox.FaultTwice, 0))
	require.NoError(t, s.Sandbox.FailRefund(s.refunds(order, "succeeded")[0].ID))
	s.settled()
	require.Equal(t, "failed", s.refundStatus(order))
	require.Zero(t, s.payment(order).Number("refunded.amount"))
	require.EqualValues(t, 1, s.found("worker", "refund_failed_late"))

	requireStatus(t, http.StatusAccepted, s.refund(order, "three", shopTotal))
	s.jobDone("refund-charge", order)
	s.settled()
	require.Len(t, s.refunds(order, "succeeded"), 1)
}

// Ensure a dispute is counted once though it is delivered twice, and moves nothing.
func TestEventsOfADispute(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	s.settled()
	before := s.payment(order).Header.Get("ETag")
	s.faults(fault(sandbox.OpEvent, sandbox.FaultTwice, 0))
	require.NoError(t, s.Sandbox.OpenDispute(s.intentOf(order)))
	s.delivered()
	require.EqualValues(t, 1, s.found("api", "dispute"))
	require.Equal(t, 1, s.Count(t, `provider_events WHERE type = 'charge.dispute.created'`))
	require.Equal(t, before, s.payment(order).Header.Get("ETag"))
}

// Ensure a charge of an order that is not here is noted, once, so that reconciliation returns it.
func TestEventsOfAnUnknownOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := uuid.NewString()
	intent := s.chargeUnknown(order)
	s.settled()
	const noted = `unmatched_charges WHERE order_id = $1 AND intent_id = $2 AND kind = 'unknown_charge' AND amount = 700`
	require.Equal(t, 1, s.Count(t, noted, order, intent))
	require.EqualValues(t, 1, s.found("worker", "unknown_charge"))
}

// Ensure an event that names this order's intent under another tenant, or another order's under this one, touches neither.
func TestEventsOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	one, two := s.placePaid("pm_card_visa"), s.placePaid("pm_card_visa")
	s.settled()
	before := []string{s.payment(one).Header.Get("ETag"), s.payment(two).Header.Get("ETag")}
	requireReceived(t, s.deliver(eventOf("evt_tenant", "payment_intent.succeeded", "other", one, s.intentOf(one))))
	requireReceived(t, s.deliver(eventOf("evt_order", "payment_intent.succeeded", "default", one, s.intentOf(two))))
	s.awaitJob("settle-payment", one, `args->>'tenant_id' = 'other' AND cardinality(errors) > 0`)
	s.awaitJob("settle-payment", one, `args->>'tenant_id' = 'default' AND cardinality(errors) > 0`)
	after := []string{s.payment(one).Header.Get("ETag"), s.payment(two).Header.Get("ETag")}
	require.Equal(t, before, after)
	require.Zero(t, s.Count(t, `unmatched_charges`))
	require.Positive(t, s.found("worker", "mismatch"))
	s.exec(`DELETE FROM river_job WHERE state <> 'running' AND kind = 'settle-payment'`)
}

// Ensure a signed body that is no event is refused without a trace of it.
func TestEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, body := range []string{
		`{`, `null`, `[]`, `"evt_1"`, `{}`, `{} {}`, "\xff", `{"id":"evt_1","object":"event"}`, `{"object":"event","type":"a.b"}`,
		eventAbout("evt_"+strings.Repeat("1", 300), "a.b", nil), eventAbout("evt 1", "a.b", nil), eventAbout("evt_1\x00", "a.b", nil),
	} {
		a := s.deliver(body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", body, a.Body)
		require.Equal(t, "malformed_request", a.Code(), body)
	}
	s.requireEvents(0, 0)
}

// Ensure an event that is not about an order of this service, whatever its metadata are, is received and left alone.
func TestEventsThatAreNotOurs(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := uuid.NewString()
	for i, metadata := range []any{
		nil, "x", 7, []string{"default", order}, map[string]any{}, map[string]any{"tenant_id": "default"},
		map[string]any{"order_id": order}, map[string]any{"tenant_id": "default", "order_id": map[string]any{"id": order}},
		map[string]any{"tenant_id": "a\x00b", "order_id": order}, map[string]any{"tenant_id": strings.Repeat("t", 10_000), "order_id": order},
		map[string]any{"tenant_id": "default", "order_id": "'; DROP TABLE orders; --"},
		map[string]any{"tenant_id": "default", "order_id": strings.ToUpper(order)},
		map[string]any{"tenant_id": "default", "order_id": "{" + order + "}"},
		map[string]any{"tenant_id": "default", "order_id": uuid.Nil.String()},
	} {
		object := map[string]any{"id": "pi_1", "object": "payment_intent", "metadata": metadata}
		a := s.deliver(eventAbout("evt_1", "payment_intent.succeeded", object))
		require.Equal(t, http.StatusOK, a.Status, "%d: %s", i, a.Body)
	}
	requireReceived(t, s.deliver(eventAbout("evt_1", "balance.available", nil)))
	s.requireEvents(0, 0)
}

// Ensure the id of an event is kept for PROVIDER_EVENT_RETENTION, and that the purge then removes it, in batches, and leaves
// the others.
//
// Standard: litespec/ext/concurrency#bound-expired-record-cleanup
func TestEventsExpire(t *testing.T) {
	t.Parallel()
	s := openShop(t, "PURGE_BATCH_SIZE", "2", "PURGE_BATCHES", "2", "PURGE_PAUSE", "0s")
	s.StartWorker(t)
	order := uuid.NewString()
	for range 7 {
		requireReceived(t, s.deliver(s.anEvent(order)))
	}
	require.Equal(t, 7, s.Count(t, `provider_events WHERE expires_at = received_at + interval '96 hours'`))
	s.exec(`UPDATE provider_events SET received_at = received_at - interval '97 hours', expires_at = expires_at - interval '97 hours'
		WHERE event_id IN (SELECT event_id FROM provider_events ORDER BY received_at LIMIT 6)`)
	for _, left := range []int{3, 1, 1} {
		runNow(t, s.Service, testkit.JobPurge)
		require.Equal(t, left, s.Count(t, `provider_events`))
	}
	s.exec(`DELETE FROM river_job WHERE state <> 'running' AND kind = 'settle-payment'`)
}
