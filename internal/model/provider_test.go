package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

// stripe is the provider: objects, saved answers, calls that still execute, and events on their way. docs/provider.md
// names the page of each rule.
type stripe struct {
	card    card
	silent  bool // it sends no events
	intents []intent
	refunds []app.ProviderRefund
	saved   []saved
	late    []call // answered with a 500, and executed after that
	events  []event
}

// card is what becomes of a confirmation.
type card int

const (
	good     card = iota // succeeds
	declined             // is declined
	slow                 // is processing first, then either
)

type intent struct {
	app.Intent
	found app.IntentStatus // what the search knows, a day behind; empty: nothing
}

// call is a request with an idempotency key.
type call struct {
	what   string // create, confirm, cancel or refund
	key    string
	intent string
	refund uuid.UUID
	amount domain.Money
}

// answer is the provider's answer to a call.
type answer struct {
	intent app.Intent
	refund app.ProviderRefund
	err    error
}

// saved is what the provider repeats for a key, until it prunes it after a day.
type saved struct {
	call
	answer answer
}

type event struct {
	id, intent string
	told       *stripe // what the provider held then
}

// outcome is what the environment makes of a call.
type outcome int

const (
	works       outcome = iota
	fails               // executed, answered 500, saved
	failsUndone         // begun without effect, answered 500, saved
	failsLater          // answered 500, executed after that
	refuses             // 400, for a reason that is no decline; saved
)

func (o outcome) String() string {
	return [...]string{"works", "500 executed", "500 undone", "500 executes later", "refused"}[o]
}

var (
	error500 = fmt.Errorf("500: %w", app.ErrKeyUnusable)
	error400 = &app.RefusedError{Code: "invalid_request_error"}
	error402 = &app.RefusedError{Code: "card_error/card_declined"}
)

func (s stripe) clone() stripe {
	s.intents, s.refunds, s.saved = slices.Clone(s.intents), slices.Clone(s.refunds), slices.Clone(s.saved)
	s.late, s.events = slices.Clone(s.late), slices.Clone(s.events)
	return s
}

// answer answers a call as Stripe does: a saved answer is repeated, else the call executes, and its answer is saved.
// noKeys plants the fault of a client that sends another key with every attempt.
func (s *stripe) answer(c call, o outcome, noKeys bool) answer {
	for _, k := range s.saved {
		if k.key != c.key || noKeys {
			continue
		}
		if k.call != c {
			return answer{err: fmt.Errorf("idempotency_error: %w", app.ErrKeyUnusable)}
		}
		return k.answer
	}
	if slices.Contains(s.late, c) && !noKeys {
		return answer{err: errors.New("idempotency_key_in_use")}
	}
	var a answer
	switch o {
	case failsLater:
		s.late = append(s.late, c)
		return answer{err: error500}
	case failsUndone:
		a.err = error500
	case refuses:
		a.err = error400
	default:
		if a = s.execute(c); o == fails {
			a = answer{err: error500}
		}
	}
	if !noKeys {
		s.saved = append(s.saved, saved{c, a})
	}
	return a
}

func (s *stripe) execute(c call) answer {
	switch c.what {
	case "create":
		i := app.Intent{ID: fmt.Sprintf("pi%d", len(s.intents)+1), Status: app.IntentRequiresConfirmation, Amount: c.amount}
		s.intents = append(s.intents, intent{Intent: i})
		return answer{intent: i}
	case "refund":
		return s.refund(c)
	}
	i := s.intent(c.intent)
	switch {
	case i.Status != app.IntentRequiresConfirmation && (c.what == "confirm" || i.Status != app.IntentRequiresPaymentMethod):
		return answer{err: error400} // payment_intent_unexpected_state
	case c.what == "cancel":
		s.move(i, app.IntentCanceled)
	case s.card == declined:
		s.move(i, app.IntentRequiresPaymentMethod)
		return answer{err: error402}
	case s.card == slow:
		s.move(i, app.IntentProcessing)
	default:
		s.move(i, app.IntentSucceeded)
	}
	return answer{intent: i.Intent}
}

func (s *stripe) refund(c call) answer {
	left := s.intent(c.intent).Amount.Amount - s.refunded(c.intent)
	if s.intent(c.intent).Status != app.IntentSucceeded || c.amount.Amount > left {
		return answer{err: &app.RefusedError{Code: "invalid_request_error", Final: left == 0}} // charge_already_refunded
	}
	r := app.ProviderRefund{
		ID: fmt.Sprintf("re%d", len(s.refunds)+1), RefundID: c.refund, IntentID: c.intent, Amount: c.amount,
		Status: domain.RefundSucceeded,
	}
	s.refunds = append(s.refunds, r)
	return answer{refund: r}
}

func (s *stripe) intent(id string) *intent {
	return &s.intents[slices.IndexFunc(s.intents, func(i intent) bool { return i.ID == id })]
}

// move changes an intent and sends the event of it.
func (s *stripe) move(i *intent, to app.IntentStatus) {
	i.Status = to
	if to != app.IntentProcessing {
		s.tell(i.ID, string(to))
	}
}

func (s *stripe) tell(intent, what string) {
	if s.silent {
		return
	}
	told := s.clone()
	told.events, told.saved, told.late = nil, nil, nil
	s.events = append(s.events, event{intent + " " + what, intent, &told})
}

// refunded is how much of an intent has gone back.
func (s *stripe) refunded(intent string) (sum int64) {
	for _, r := range s.refunds {
		if r.IntentID == intent && r.Status != domain.RefundFailed {
			sum += r.Amount.Amount
		}
	}
	return sum
}

// age prunes the keys and lets the search catch up.
func (s *stripe) age() {
	s.saved = nil
	for i := range s.intents {
		s.intents[i].found = s.intents[i].Status
	}
}

func (s *stripe) retrieve(id string) (app.Intent, error) {
	if !slices.ContainsFunc(s.intents, func(i intent) bool { return i.ID == id }) {
		return app.Intent{}, errors.New("resource_missing")
	}
	return s.intent(id).Intent, nil
}

func (s *stripe) search() (found []app.Intent) {
	for _, i := range s.intents {
		if i.Status = i.found; i.found != "" {
			found = append(found, i.Intent)
		}
	}
	return found
}

func (s *stripe) list(intent string) (found []app.ProviderRefund) {
	for _, r := range s.refunds {
		if r.IntentID == intent {
			found = append(found, r)
		}
	}
	return found
}

// objects is the canonical encoding of what the provider holds, in the order of its ids.
func (s *stripe) objects() string {
	var b strings.Builder
	for _, i := range s.intents {
		fmt.Fprintf(&b, "%s %s %s;", i.ID, i.Status, i.found)
	}
	for _, r := range s.refunds {
		fmt.Fprintf(&b, "%s %x %s %d %s;", r.ID, r.RefundID[13:], r.IntentID, r.Amount.Amount, r.Status)
	}
	return b.String()
}

func (s *stripe) encode() string {
	var list []string
	for _, k := range s.saved {
		list = append(list, fmt.Sprintf("%s=%s %s %s %v", k.key, k.answer.intent.ID, k.answer.intent.Status, k.answer.refund.ID, k.answer.err))
	}
	for _, e := range s.events {
		list = append(list, "event "+e.id)
	}
	for _, c := range s.late {
		list = append(list, "late "+c.key)
	}
	slices.Sort(list)
	return fmt.Sprint(s.card, s.objects(), list)
}
