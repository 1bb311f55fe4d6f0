package sandbox

import (
	"encoding/json"
	"time"
)

// state is all that survives a restart. Objects are kept in the shape in which Stripe shows them.
type state struct {
	intents  series[*intent]
	refunds  series[*refund]
	events   series[*event]
	disputes map[string]*dispute // by payment intent

	refundsOf map[string][]string  // ids of refunds by payment intent, in the order of their creation
	history   map[string][]version // what a lagging search may still show of an intent
	byMeta    map[string][]string  // ids of intents by metadata name and value, in the order of their creation
	charged   int                  // intents on whose card an attempt was made

	keys     map[string]*savedKey
	keyOrder []*savedKey // the oldest first, with those that have been forgotten since

	signingKey json.RawMessage
	skew       time.Duration // how far the clock was advanced
	last       time.Time     // the latest time that was handed out: time never goes back
}

// version is an intent from a moment on.
type version struct {
	at time.Time
	*intent
}

func newState() *state {
	return &state{
		disputes: map[string]*dispute{}, refundsOf: map[string][]string{}, history: map[string][]version{},
		byMeta: map[string][]string{}, keys: map[string]*savedKey{},
	}
}

// entry is one change of the state, whole: a line of the state file. What is absent does not change.
type entry struct {
	At         time.Time       `json:"at"`
	Intents    []*intent       `json:"payment_intents,omitempty"`
	Refunds    []*refund       `json:"refunds,omitempty"`
	Disputes   []*dispute      `json:"disputes,omitempty"`
	Events     []*event        `json:"events,omitempty"`
	Key        *savedKey       `json:"key,omitempty"`
	ForgetKeys bool            `json:"forget_keys,omitempty"`
	Advance    time.Duration   `json:"advance,omitempty"`
	SigningKey json.RawMessage `json:"signing_key,omitempty"`
}

// apply brings a change into the state, first when it is made and again when the file is read.
func (st *state) apply(e entry) {
	if e.At.After(st.last) {
		st.last = e.At
	}
	for _, pi := range e.Intents {
		st.putIntent(pi, e.At)
	}
	for _, r := range e.Refunds {
		st.putRefund(r)
	}
	for _, d := range e.Disputes {
		st.disputes[d.PaymentIntent] = d
	}
	for _, ev := range e.Events {
		st.events.put(ev)
	}
	if e.ForgetKeys {
		clear(st.keys)
		st.keyOrder = nil
	}
	if e.Key != nil {
		st.keys[e.Key.Key] = e.Key
		st.keyOrder = append(st.keyOrder, e.Key)
	}
	if e.SigningKey != nil {
		st.signingKey = e.SigningKey
	}
	st.skew += e.Advance
}

func (st *state) putIntent(pi *intent, at time.Time) {
	if before := st.intents.get(pi.ID); pi.LatestCharge != nil && (before == nil || before.LatestCharge == nil) {
		st.charged++
	}
	if st.intents.put(pi) {
		for name, value := range pi.Metadata {
			st.byMeta[metaKey(name, value)] = append(st.byMeta[metaKey(name, value)], pi.ID)
		}
	}
	st.history[pi.ID] = append(st.history[pi.ID], version{at, pi})
}

func (st *state) putRefund(r *refund) {
	if st.refunds.put(r) {
		st.refundsOf[r.PaymentIntent] = append(st.refundsOf[r.PaymentIntent], r.ID)
	}
}

// metaKey joins a name and a value. No NUL gets into either: the search takes no text that
// could name another pair.
func metaKey(name, value string) string { return name + "\x00" + value }

// asOf is an intent as it was at a moment, or nil if it was not there yet. Versions that no later moment can ask for
// are dropped.
func (st *state) asOf(id string, moment time.Time) *intent {
	versions := st.history[id]
	at := len(versions) - 1
	for at >= 0 && versions[at].at.After(moment) {
		at--
	}
	if at < 0 {
		return nil
	}
	st.history[id] = versions[at:]
	return versions[at].intent
}

// pruneKeys drops the keys whose time has passed. They expire in the order in which they were saved.
func (st *state) pruneKeys(now time.Time) {
	for len(st.keyOrder) > 0 && st.keyOrder[0].expired(now) {
		if k := st.keyOrder[0]; st.keys[k.Key] == k {
			delete(st.keys, k.Key)
		}
		st.keyOrder[0] = nil
		st.keyOrder = st.keyOrder[1:]
	}
}
