package model

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// slip is a mistake that is planted in the protocol of client keys.
type slip int

const (
	noSlip      slip = iota
	noTurn           // every transaction gets the turn: no mistake, the turn is an optimisation
	noIndex          // the record is stored whether or not there is one
	recordApart      // the record is committed after the change, in a transaction of its own
	claimApart       // the record is committed before the change, in a transaction of its own
	anyPrint         // the fingerprint is not compared
	turnKept         // a crash does not give the turn back
	earlyAnswer      // the answer is sent before the commit
)

// keyBounds are the actors of one search. Three requests have one key; the third means something else.
type keyBounds struct {
	faults  int  // crashes and lost answers in one history
	old     bool // process 2 is of the release that claims the key with an INSERT before the change
	ticks   int  // how often records expire
	planted slip
}

type stage int

const (
	idle    stage = iota // at the client, which sends it again until it is answered
	atGate               // waits in the memory of its process
	probing              // another process has the key: looks again, or its wait is over
	looked               // there was no record
	begun                // BEGIN, and the turn among all processes
	handled              // there was still no record; the change is ready
	stored               // planted: half of it is committed
	ended                // answered
)

// request is one client's. The rest of it is zero while it is idle and once it has ended, but for the answer.
type request struct {
	stage   stage
	process int
	holds   bool // the turn of its process
	turn    bool // the turn among all processes
	at      int  // the clock when its transaction began
	answer  int  // the number of the change that it was told of; -1: the key was used for another request
}

// change is what an accepted request does, with its job: one commit.
type change struct {
	print   int
	at      int // when it was committed
	expires int // when its record does: the retention counts from the beginning of the transaction
}

// keyRecord is the row of the key.
type keyRecord struct {
	print, change, expires int
}

// keyWorld is the state of the model. It has no pointers, so that a copy is a state of its own.
type keyWorld struct {
	faults, clock int
	requests      [3]request
	done          [2]bool // the gate of each process: a request has been answered
	record        keyRecord
	claim         int // the request of the old release whose claim is not committed; -1: none
	kept          bool
	changes       [4]change
	count         int
}

// prints of the requests.
var prints = [3]int{1, 1, 2}

// keys is the model of the protocol of client keys: two processes, each with its gate, and three requests with one
// key. The steps are those of InKeyedTx, and the pipeline of the service decides what becomes of a request. With two
// faults the search sees 163,000 states, 30 steps deep; docs/model.md lists the searches and what each planted
// mistake breaks.
func keys(t *testing.T, b keyBounds) spec[keyWorld, keyWorld] {
	t.Helper()
	m := &keyModel{keyBounds: b, verdicts: map[[2]int]bool{}}
	for i, quantity := range []int64{1, 2} {
		t1 := &tx{db: database{onHand: units}}
		_, err := place(t1, quantity)
		require.NoError(t, err)
		m.prints[i+1] = t1.record.Fingerprint
	}
	return spec[keyWorld, keyWorld]{
		initial: []keyWorld{{faults: b.faults, claim: -1}},
		key:     func(w keyWorld) keyWorld { return w },
		steps:   m.steps, always: m.always, quiet: m.quiet,
	}
}

type keyModel struct {
	keyBounds
	prints   [3]app.Fingerprint
	verdicts map[[2]int]bool // of the pipeline, which has no memory
	from     keyWorld
	list     []step[keyWorld]
}

func (m *keyModel) add(optional bool, name string, change func(w *keyWorld)) {
	to := m.from
	change(&to)
	m.list = append(m.list, step[keyWorld]{name, optional, to})
}

func (m *keyModel) steps(w keyWorld) []step[keyWorld] {
	m.from, m.list = w, nil
	for i := range w.requests {
		if m.old && w.requests[i].stage != idle && w.requests[i].process == 1 {
			m.oldRelease(i)
		} else {
			m.request(i)
		}
	}
	for p := range w.done {
		if w.faults > 0 {
			m.add(true, fmt.Sprintf("process %d crashes", p+1), func(w *keyWorld) { w.faults--; m.crash(w, p) })
		}
	}
	if w.clock < m.ticks {
		m.add(true, "the record expires", func(w *keyWorld) { w.clock++ })
	}
	if w.record.change > 0 && w.record.expires <= w.clock && w.claim < 0 {
		m.add(true, "the purge removes the record", func(w *keyWorld) { w.record = keyRecord{} })
	}
	return m.list
}

// request is the next step of a request at a process of this release.
func (m *keyModel) request(i int) {
	r := m.from.requests[i]
	say := func(what string) string { return fmt.Sprintf("request %d %s", i+1, what) }
	switch r.stage {
	case idle:
		for p := range m.from.done {
			m.add(false, say(fmt.Sprintf("is sent to process %d", p+1)), func(w *keyWorld) {
				w.requests[i] = request{stage: atGate, process: p}
			})
		}
	case atGate:
		taken := slices.ContainsFunc(m.from.requests[:], func(o request) bool { return o.holds && o.process == r.process })
		if !taken || m.from.done[r.process] {
			m.add(false, say("leaves the gate and looks"), func(w *keyWorld) { w.requests[i].holds = !taken; m.look(w, i) })
		}
		m.add(true, say("has waited too long"), func(w *keyWorld) { w.leave(i, 0) })
	case probing:
		m.add(false, say("looks again"), func(w *keyWorld) { m.look(w, i) })
		m.add(true, say("has waited too long"), func(w *keyWorld) { w.leave(i, 0) })
	case looked:
		m.add(false, say("begins"), func(w *keyWorld) { m.begin(w, i) })
	case begun:
		m.add(false, say("looks once more and is handled"), func(w *keyWorld) { m.handle(w, i) })
	case handled:
		if m.from.claim < 0 {
			m.commit(i, say)
		} else {
			m.add(false, say("meets a lock for too long"), func(w *keyWorld) { w.rollBack(i) })
		}
	case stored:
		m.commit(i, say)
	case ended:
	}
}

// look is the first flight: it reads the record, and the pipeline of the service replays it, refuses, or goes on.
func (m *keyModel) look(w *keyWorld, i int) {
	r := &w.requests[i]
	r.stage = looked
	if !w.live(w.clock) {
		return
	}
	found := w.record.print
	if m.planted == anyPrint {
		found = prints[i]
	}
	if m.replays(prints[i], found) {
		w.leave(i, w.record.change)
	} else {
		w.leave(i, -1)
	}
}

// live reports whether there is a record that has not expired by then.
func (w *keyWorld) live(at int) bool { return w.record.change > 0 && w.record.expires > at }

// begin starts a transaction: its clock, and pg_try_advisory_xact_lock, which ends it where another request has the turn.
func (m *keyModel) begin(w *keyWorld, i int) {
	taken := w.kept || slices.ContainsFunc(w.requests[:], func(o request) bool { return o.turn })
	if taken && m.planted != noTurn {
		w.rollBack(i)
		return
	}
	r := &w.requests[i]
	r.stage, r.at, r.turn = begun, w.clock, true
}

// replays runs the pipeline of the service for a request that finds a record, whose fingerprints it compares.
func (m *keyModel) replays(own, record int) bool {
	prints := [2]int{own, record}
	if v, known := m.verdicts[prints]; known {
		return v
	}
	t := &tx{db: database{onHand: units}, find: func() (*app.KeyRecord, error) {
		return &app.KeyRecord{Fingerprint: m.prints[record]}, nil
	}}
	outcome, err := place(t, int64(own))
	m.verdicts[prints] = err == nil && outcome.Replayed
	return m.verdicts[prints]
}

// handle is the rest of the flight of BEGIN, which ends where a record has come in between, and the handler.
func (m *keyModel) handle(w *keyWorld, i int) {
	r := &w.requests[i]
	if w.live(r.at) {
		w.rollBack(i)
		return
	}
	r.stage = handled
	if m.planted == earlyAnswer {
		r.answer = w.count + 1
	}
	if m.planted == claimApart {
		w.record = keyRecord{prints[i], w.count + 1, r.at + 1}
	}
}

// commit is the last flight: the record, the change, its job and COMMIT.
func (m *keyModel) commit(i int, say func(string) string) {
	r, last := m.from.requests[i], m.from.record
	switch {
	case r.stage == handled && m.planted != noIndex && m.planted != claimApart && last.change > 0 && last.expires > r.at:
		m.add(false, say("is refused by the index"), func(w *keyWorld) { w.rollBack(i) })
		return
	case r.stage == handled && m.planted == recordApart:
		m.add(false, say("commits its change"), func(w *keyWorld) { w.apply(i); w.requests[i].stage = stored })
		return
	case r.stage == stored:
		m.add(false, say("commits its record"), func(w *keyWorld) {
			w.record = keyRecord{prints[i], w.count, r.at + 1}
			w.leave(i, w.count)
		})
		return
	}
	all := func(w *keyWorld) {
		w.apply(i)
		w.record = keyRecord{prints[i], w.count, r.at + 1}
		w.leave(i, w.count)
	}
	m.add(false, say("commits"), all)
	if m.from.faults > 0 {
		m.add(true, say("commits, and its answer is lost"), func(w *keyWorld) { all(w); w.faults--; w.requests[i] = request{} })
	}
}

func (w *keyWorld) apply(i int) {
	w.changes[w.count] = change{prints[i], w.clock, w.requests[i].at + 1}
	w.count++
}

// rollBack ends the transaction of a request that keeps its place.
func (w *keyWorld) rollBack(i int) { w.requests[i].stage, w.requests[i].turn = probing, false }

// leave ends a request: answered, or, with 0, to be sent again.
func (w *keyWorld) leave(i, answer int) {
	r := w.requests[i]
	if answer > 0 && r.holds {
		w.done[r.process] = true
	}
	w.requests[i] = request{}
	if answer != 0 {
		w.requests[i] = request{stage: ended, answer: answer}
	}
	w.close(r.process)
}

// close forgets the gate of a process that no request uses.
func (w *keyWorld) close(p int) {
	here := func(r request) bool { return r.stage != idle && r.stage != ended && r.process == p }
	w.done[p] = w.done[p] && slices.ContainsFunc(w.requests[:], here)
}

// crash ends the transactions of a process: PostgreSQL rolls them back.
func (m *keyModel) crash(w *keyWorld, p int) {
	for i, r := range w.requests {
		if r.stage == idle || r.stage == ended || r.process != p {
			continue
		}
		w.kept = w.kept || r.turn && m.planted == turnKept
		if w.claim == i {
			w.claim = -1
		}
		w.requests[i] = request{}
		if r.answer != 0 {
			w.requests[i] = request{stage: ended, answer: r.answer}
		}
	}
	w.done[p] = false
}

// oldRelease is the next step of a request at a process that claims the key first: INSERT … ON CONFLICT, which waits
// for another claim that is not committed, and replaces an expired record.
func (m *keyModel) oldRelease(i int) {
	r, last := m.from.requests[i], m.from.record
	say := func(what string) string { return fmt.Sprintf("request %d at the old release %s", i+1, what) }
	switch {
	case r.stage == atGate && last.change > 0 && last.expires > m.from.clock:
		answer := last.change
		if last.print != prints[i] {
			answer = -1
		}
		m.add(false, say("finds the record"), func(w *keyWorld) { w.leave(i, answer) })
	case r.stage == atGate && m.from.claim < 0:
		m.add(false, say("claims"), func(w *keyWorld) {
			w.claim = i
			w.requests[i].stage, w.requests[i].at = handled, w.clock
		})
	case r.stage == handled:
		m.add(false, say("commits"), func(w *keyWorld) {
			w.claim = -1
			w.apply(i)
			w.record = keyRecord{prints[i], w.count, r.at + 1}
			w.leave(i, w.count)
		})
	}
}

// always is what holds in every state.
func (m *keyModel) always(w keyWorld) error {
	for i := range w.count {
		for k := range i {
			if a, b := w.changes[i], w.changes[k]; a.at < b.expires && b.at < a.expires {
				return errors.New("two changes within one retention")
			}
		}
	}
	for i, r := range w.requests {
		if r.stage != ended || r.answer < 0 {
			continue
		}
		if r.answer > w.count {
			return errors.New("an accepted answer without its change")
		}
		if w.changes[r.answer-1].print != prints[i] {
			return errors.New("the answer of another request")
		}
	}
	return nil
}

// quiet is what holds once nothing is left to do.
func (*keyModel) quiet(w keyWorld) error {
	for _, r := range w.requests {
		if r.stage != ended {
			return errors.New("a request waits for ever")
		}
	}
	if w.claim >= 0 || w.done != [2]bool{} {
		return errors.New("something is left of a request")
	}
	return nil
}

// Ensure that no history of the bounded actors breaks the protocol of client keys.
func TestKeysModel(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]keyBounds{
		"crashes and lost answers": {faults: 2, ticks: 1},
		"beside an older release":  {faults: 1, ticks: 1, old: true},
		"without the turn":         {ticks: 1, planted: noTurn},
	} {
		if small() {
			b.faults = min(b.faults, 1)
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); explore(keys(t, b), 400_000).holds(t) })
	}
}

// Ensure that the model can lose: each planted mistake is found, by a shortest history of that many steps.
func TestKeysModelFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		bounds    keyBounds
		invariant string
		steps     int
	}{
		{"no unique index", keyBounds{planted: noIndex, old: true}, "two changes", 8},
		{"the record after the change", keyBounds{planted: recordApart, faults: 1}, "two changes", 11},
		{"the record before the change", keyBounds{planted: claimApart, faults: 1}, "without its change", 6},
		{"no fingerprint", keyBounds{planted: anyPrint}, "another request", 7},
		{"a turn that a crash keeps", keyBounds{planted: turnKept, faults: 1}, "never ends", 4},
		{"an answer before the commit", keyBounds{planted: earlyAnswer, faults: 1}, "without its change", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			explore(keys(t, c.bounds), 100_000).breaks(t, c.invariant, c.steps)
		})
	}
}
