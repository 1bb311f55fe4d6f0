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

func (c *change) putIntent(pi *intent, types ...string) {
	c.put(entry{Intents: []*intent{pi}}, pi, types...)
}

func (c *change) putRefund(r *refund, types ...string) {
	c.put(entry{Refunds: []*refund{r}}, r, types...)
}

// put brings a new or changed object into the state and tells of it under the event types.
func (c *change) put(e entry, about any, types ...string) {
	c.apply(e)
	for _, kind := range types {
		c.tell(kind, about)
	}
}

// tell makes an event with the object as it is at this moment.
func (c *change) tell(kind string, about any) {
	c.apply(entry{Events: []*event{newEvent(kind, about, c)}})
}

func (c *change) apply(e entry) {
	e.At = c.now
	c.st.apply(e)
	c.entry.Intents, c.entry.Refunds = append(c.entry.Intents, e.Intents...), append(c.entry.Refunds, e.Refunds...)
	c.entry.Disputes, c.entry.Events = append(c.entry.Disputes, e.Disputes...), append(c.entry.Events, e.Events...)
}
