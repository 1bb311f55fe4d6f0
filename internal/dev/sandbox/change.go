package sandbox

import "time"

// change is one execution at work on the state, with the lock held. What it puts is in the state at once. It is written
// to the file, and delivered as events, when the execution ends.
type change struct {
	st        *state
	now       time.Time
	requestID string
	key       string
	decline   bool // a fault: the card is declined, the refund fails
	process   bool // a fault: the charge stays in processing
	entry     entry
}

// putIntent brings a new or changed intent into the state and tells of it under the event types.
func (c *change) putIntent(pi *intent, types ...string) {
	c.put(entry{At: c.now, Intents: []*intent{pi}})
	c.entry.Intents = append(c.entry.Intents, pi)
	for _, kind := range types {
		c.tell(kind, pi)
	}
}

// putRefund brings a new or changed refund into the state and tells of it under the event types.
func (c *change) putRefund(r *refund, types ...string) {
	c.put(entry{At: c.now, Refunds: []*refund{r}})
	c.entry.Refunds = append(c.entry.Refunds, r)
	for _, kind := range types {
		c.tell(kind, r)
	}
}

func (c *change) putDispute(d *dispute, kind string) {
	c.put(entry{At: c.now, Disputes: []*dispute{d}})
	c.entry.Disputes = append(c.entry.Disputes, d)
	c.tell(kind, d)
}

func (c *change) put(e entry) { c.st.apply(e) }

// tell makes an event with the object as it is at this moment.
func (c *change) tell(kind string, about any) {
	ev := newEvent(kind, about, c)
	c.put(entry{At: c.now, Events: []*event{ev}})
	c.entry.Events = append(c.entry.Events, ev)
}
