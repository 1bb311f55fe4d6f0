package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/sandbox"
)

// attempts is what the provider was asked to change for an order, in order.
func (d *demo) attempts(id openapi.OrderID) (found []sandbox.Attempt) {
	for _, a := range d.provider.Attempts() {
		if strings.Contains(a.IdempotencyKey, id.String()) {
			found = append(found, a)
		}
	}
	return found
}

// confirmations is the attempts that can charge.
func (d *demo) confirmations(id openapi.OrderID) (found []sandbox.Attempt) {
	for _, a := range d.attempts(id) {
		if strings.HasSuffix(a.Path, "/confirm") {
			found = append(found, a)
		}
	}
	return found
}

// showAttempts prints each attempt without the intent's and the order's id.
func (d *demo) showAttempts(id openapi.OrderID) {
	for _, a := range d.attempts(id) {
		_, key, _ := strings.Cut(a.IdempotencyKey, id.String())
		call := strings.TrimPrefix(key, ":")
		d.story.line("provider", "POST %s   Idempotency-Key: order:…:%s   %s", withoutID(a.Path), call, a.Outcome)
	}
}

// lostEvents keeps the provider's events from the service, which would learn of a charge by them before a retry does.
func lostEvents() sandbox.FaultRule {
	return sandbox.FaultRule{Operation: sandbox.OpEvent, Kind: sandbox.FaultLost}
}

// withoutID is a path of the provider with dots for the id in it.
func withoutID(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "pi_") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

func savedError(ctx context.Context, s *step) error {
	s.story.line("", "The provider charges, answers 500, and keeps that answer under the key.")
	id, err := s.boughtDuring(ctx, sandbox.FaultError500)
	if err != nil {
		return err
	}
	s.check(len(s.confirmations(id)) == 1, "the next run reads the intent: it has succeeded, and is not confirmed again")
	s.story.line("", "The provider answers 500 and keeps it, and has charged nothing. Its key would repeat the 500 for a day.")
	if id, err = s.boughtDuring(ctx, sandbox.FaultError500Undone); err != nil {
		return err
	}
	tries := s.confirmations(id)
	s.check(len(tries) == 2 && strings.HasSuffix(tries[1].IdempotencyKey, ":confirm:2"),
		"the next run reads the intent: it waits for a confirmation, and gets one under the next key")
	return nil
}

// boughtDuring places an order whose confirmation meets a fault, once, and checks that it is charged once all the same.
func (s *step) boughtDuring(ctx context.Context, kind string) (openapi.OrderID, error) {
	defer s.provider.ClearFaults()
	rules := []sandbox.FaultRule{{Operation: sandbox.OpConfirmIntent, Kind: kind, Times: 1}, lostEvents()}
	if err := s.provider.SetFaults(rules); err != nil {
		return openapi.OrderID{}, err
	}
	order, err := s.as("alice").PlaceOrder(ctx, basket(tea, 1))
	if err != nil {
		return openapi.OrderID{}, err
	}
	id := order.Value.ID
	if _, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded); err != nil {
		return id, err
	}
	s.showAttempts(id)
	return id, s.chargedOnce(ctx, id, 1999)
}

// cancelLoses cancels an order whose card the provider has charged, before the service knows.
func cancelLoses(ctx context.Context, s *step) error {
	stock, alice := s.onHand(ctx, tea), s.as("alice")
	if err := s.holdCharges(); err != nil {
		return err
	}
	defer s.provider.ClearFaults()
	s.story.line("", "The provider is slow: it charges, keeps its answer, and its event is lost.")
	order, err := alice.PlaceOrder(ctx, basket(tea, 3))
	if err != nil {
		return err
	}
	id := order.Value.ID
	if err := s.charged(ctx, id); err != nil {
		return err
	}
	s.showLedger(id)
	payment, err := alice.GetPayment(ctx, id)
	if err != nil {
		return err
	}
	s.check(payment.Value.Status == openapi.PaymentStatusPending, "the card is charged, and the service does not know yet")
	if _, err := alice.CancelOrder(ctx, id, order.ETag, openapi.CancelOrderRequest{Reason: new("too slow")}); err != nil {
		return err
	}
	s.story.line("", "The order is cancelled at once. Its job asks the provider: the charge was first.")
	return s.cancelledAndRefunded(ctx, id, 3*1999, stock)
}

// cancelWins cancels an order while its confirmation is on its way to the provider.
func cancelWins(ctx context.Context, s *step) error {
	stock, alice := s.onHand(ctx, tea), s.as("alice")
	rule := sandbox.FaultRule{Operation: sandbox.OpConfirmIntent, Kind: sandbox.FaultHoldBefore, Times: 1}
	if err := s.provider.SetFaults([]sandbox.FaultRule{rule}); err != nil {
		return err
	}
	defer s.provider.ClearFaults()
	s.story.line("", "The confirmation is slow to arrive: the provider has not charged yet.")
	order, err := alice.PlaceOrder(ctx, basket(tea, 3))
	if err != nil {
		return err
	}
	id := order.Value.ID
	if err := s.provider.WaitHeld(ctx, 1); err != nil {
		return fmt.Errorf("confirmation on its way: %w", err)
	}
	if _, err := alice.CancelOrder(ctx, id, order.ETag, openapi.CancelOrderRequest{Reason: new("too slow")}); err != nil {
		return err
	}
	if _, err := s.paid(ctx, id, openapi.PaymentStatusCanceled); err != nil {
		return err
	}
	s.story.line("", "The intent is cancelled at the provider. Now the confirmation arrives.")
	s.provider.ClearFaults()
	err = until(ctx, "the end of the charge's job", func() (ended bool, err error) {
		err = s.db.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM river_job WHERE kind = 'charge-order'
			AND state <> 'completed' AND args->>'order_id' = $1)`, id.String()).Scan(&ended)
		return ended, err
	})
	if err != nil {
		return err
	}
	s.showAttempts(id)
	s.showLedger(id)
	s.check(s.account(id).charges == 0, "the provider refused it: nothing was charged, so nothing is to be refunded")
	s.check(s.onHand(ctx, tea) == stock, "its stock is back on the shelf")
	return nil
}

// repeatedEvent delivers an event three times at once. The provider's own deliveries are lost meanwhile.
func repeatedEvent(ctx context.Context, s *step) error {
	if err := s.provider.SetFaults([]sandbox.FaultRule{lostEvents()}); err != nil {
		return err
	}
	defer s.provider.ClearFaults()
	id, err := s.bought(ctx, tea, 1)
	if err != nil {
		return err
	}
	event, err := s.eventOf(ctx, id)
	if err != nil {
		return err
	}
	before, err := s.quiet.GetPayment(ctx, id)
	if err != nil {
		return err
	}
	_, jobsBefore, err := s.received(ctx, event)
	if err != nil {
		return err
	}
	s.story.line("provider", "delivers %s three times at once", event.ID)
	errs := make(chan error, 3)
	for range 3 {
		go func() { errs <- s.deliver(ctx, event.raw) }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			return err
		}
	}
	kept, jobs, err := s.received(ctx, event)
	if err != nil {
		return err
	}
	s.check(kept == 1, "all three were answered 200, and the event is kept once")
	s.check(jobs == jobsBefore+1, "it has left one job")
	if err := s.noJobs(ctx, id); err != nil {
		return err
	}
	after, err := s.quiet.GetPayment(ctx, id)
	if err != nil {
		return err
	}
	s.check(after.ETag == before.ETag, "the job asked the provider and found nothing new: the payment is unchanged")
	return s.chargedOnce(ctx, id, 1999)
}

// providerEvent is the success of an order's charge, as the provider tells it.
type providerEvent struct {
	ID   string
	Type string
	Data struct {
		Object struct {
			ID       string
			Metadata map[string]string
		}
	}
	raw json.RawMessage
}

// eventOf finds the event of an order's charge in the provider's list.
func (s *step) eventOf(ctx context.Context, id openapi.OrderID) (providerEvent, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.provider.URL()+"/v1/events?limit=100", nil)
	if err != nil {
		return providerEvent{}, fmt.Errorf("list events: %w", err)
	}
	key, _ := s.lookup("STRIPE_API_KEY")
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return providerEvent{}, fmt.Errorf("list events: %w", err)
	}
	defer response.Body.Close()
	var list struct{ Data []json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return providerEvent{}, fmt.Errorf("list events: %w", err)
	}
	for _, raw := range list.Data {
		e := providerEvent{raw: raw}
		if err := json.Unmarshal(raw, &e); err != nil {
			return providerEvent{}, fmt.Errorf("read event: %w", err)
		}
		if e.Type == "payment_intent.succeeded" && e.Data.Object.Metadata["order_id"] == id.String() {
			return e, nil
		}
	}
	return providerEvent{}, fmt.Errorf("the provider lists no event of order %s", id)
}

// received counts an event in the inbox, and the jobs that look at its intent.
func (s *step) received(ctx context.Context, e providerEvent) (kept, jobs int, err error) {
	err = s.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM provider_events WHERE event_id = $1), (SELECT count(*)
		FROM river_job WHERE kind = 'settle-payment' AND args->>'intent_id' = $2)`, e.ID, e.Data.Object.ID).Scan(&kept, &jobs)
	if err != nil {
		return 0, 0, fmt.Errorf("count events: %w", err)
	}
	return kept, jobs, nil
}

// deliver posts an event to the API under a signature of the provider's.
func (s *step) deliver(ctx context.Context, event []byte) error {
	secret, _ := s.lookup("STRIPE_WEBHOOK_SECRET")
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: event, Secret: secret, Timestamp: time.Now()})
	url := s.api.URL() + "/v1/provider-events"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(event)))
	if err != nil {
		return fmt.Errorf("deliver event: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Stripe-Signature", signed.Header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("deliver event: %w", err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		return fmt.Errorf("deliver event: %d %s", response.StatusCode, body)
	}
	return nil
}

// noJobs waits until no job of an order is alive.
func (s *step) noJobs(ctx context.Context, id openapi.OrderID) error {
	return until(ctx, "the end of the order's jobs", func() (none bool, err error) {
		err = s.db.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM river_job WHERE args->>'order_id' = $1
			AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`, id.String()).Scan(&none)
		return none, err
	})
}

// lateFailure lets a refund fail a day after it succeeded, by the provider's clock.
func lateFailure(ctx context.Context, s *step) error {
	id, err := s.bought(ctx, tea, 1)
	if err != nil {
		return err
	}
	sam, refund := s.as("sam"), openapi.RefundOrderRequest{Amount: openapi.Money{Amount: 1999, Currency: "EUR"}}
	if _, err := sam.RefundOrder(ctx, id, refund); err != nil {
		return err
	}
	payment, err := s.paid(ctx, id, openapi.PaymentStatusSucceeded)
	if err != nil {
		return err
	}
	s.check(payment.Refunded.Amount == 1999, "the refund has succeeded")
	s.story.line("", "A day passes at the provider. Alice's card was closed: her bank sends the money back.")
	s.provider.AdvanceClock(24 * time.Hour)
	for _, r := range s.provider.Ledger().Refunds {
		if r.OrderID == id.String() {
			if err := s.provider.FailRefund(r.ID); err != nil {
				return err
			}
		}
	}
	err = until(ctx, "the provider's event", func() (bool, error) {
		now, err := s.quiet.GetPayment(ctx, id)
		return err == nil && now.Value.Refunds[0].Status == openapi.RefundStatusFailed, err
	})
	if err != nil {
		return err
	}
	s.showLedger(id)
	s.check(s.account(id) == account{charges: 1, charged: 1999}, "an event told it: the refund is failed, and counted as a finding")
	s.story.line("", "The amount can be refunded again.")
	if _, err := sam.RefundOrder(ctx, id, refund); err != nil {
		return err
	}
	if payment, err = s.paid(ctx, id, openapi.PaymentStatusSucceeded); err != nil {
		return err
	}
	s.showLedger(id)
	s.check(payment.Refunded.Amount == 1999 && s.account(id).refunded == 1999, "the second refund has succeeded; the first one has not")
	return nil
}
