package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// FinishProcessing ends the charge of an intent that a processing rule left in processing.
func (s *Sandbox) FinishProcessing(id string, succeeded bool) error {
	return s.control(func(c *change) error {
		pi := c.st.intents.get(id)
		if pi == nil || pi.Status != statusProcessing {
			return fmt.Errorf("sandbox: no payment intent %s in processing", id)
		}
		next := *pi
		if succeeded {
			next.succeed(c)
		} else {
			next.fail(c, *declined("card_declined", "generic_decline"))
		}
		return nil
	})
}

// FinishRefund makes a pending refund succeed.
func (s *Sandbox) FinishRefund(id string) error {
	return s.settleRefund(id, statusSucceeded, statusPending)
}

// FailRefund makes a refund fail that is pending or has succeeded: the customer's bank sent the money back. The amount
// can be refunded again.
func (s *Sandbox) FailRefund(id string) error {
	return s.settleRefund(id, statusFailed, statusPending, statusSucceeded)
}

func (s *Sandbox) settleRefund(id, status string, from ...string) error {
	return s.control(func(c *change) error {
		r := c.st.refunds.get(id)
		if r == nil || !slices.Contains(from, r.Status) {
			return fmt.Errorf("sandbox: no refund %s that is %s", id, strings.Join(from, " or "))
		}
		c.settle(r, status)
		return nil
	})
}

// OpenDispute makes the customer dispute a charge with their bank. The charge cannot be refunded from then on.
func (s *Sandbox) OpenDispute(intentID string) error {
	return s.control(func(c *change) error {
		pi := c.st.intents.get(intentID)
		if pi == nil || pi.Status != statusSucceeded || c.st.disputes[pi.ID] != nil {
			return fmt.Errorf("sandbox: no payment intent %s that could be disputed", intentID)
		}
		d := &dispute{
			ID: newID("du"), Object: "dispute", Amount: pi.Amount, Charge: *pi.LatestCharge, Created: c.now.Unix(),
			Currency: pi.Currency, Metadata: map[string]string{}, PaymentIntent: pi.ID, Reason: "fraudulent",
			Status: "needs_response",
		}
		c.put(entry{Disputes: []*dispute{d}}, d, "charge.dispute.created")
		return nil
	})
}

// control makes a change that no request asked for.
func (s *Sandbox) control(do func(*change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.begin()
	if err := do(c); err != nil {
		return err
	}
	s.commit(c)
	return nil
}
