package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// nemesis does to the world what operations staff hope never happens, several things at a time. What it does, to what and
// for how long comes from its seed. It runs on the test's own goroutine.
type nemesis struct {
	*world
	dice  *rand.Rand
	done  map[string]int // what it did, and how often
	diary []string
	due   []repair

	deadlocks int // that PostgreSQL has counted since it last started
}

// repair is what undoes a fault, and when.
type repair struct {
	what string // what is at fault: it is left alone until then
	at   time.Time
	undo func()
}

// rage does harm until the time is over, then heals.
func (n *nemesis) rage(length time.Duration) {
	deeds := slices.Concat(
		slices.Repeat([]func(){n.kill}, 4), slices.Repeat([]func(){n.pause}, 2), slices.Repeat([]func(){n.stopDatabase}, 2),
		slices.Repeat([]func(){n.harmLink}, 5), slices.Repeat([]func(){n.loseCommit}, 8),
		slices.Repeat([]func(){n.upsetProvider}, 5), []func(){n.finishProcessing, n.skew, n.migrate},
	)
	for end := time.Now().Add(length); time.Now().Before(end); {
		deeds[n.dice.IntN(len(deeds))]()
		<-time.After(n.span(100, 500))
		n.repair(time.Now())
		n.look()
	}
	n.repair(time.Now().Add(time.Hour))
	n.Sandbox.ClearFaults()
	for _, p := range n.parts {
		n.revive(p)
	}
	n.finishMigration()
}

// span is a time between two numbers of milliseconds.
func (n *nemesis) span(least, most int) time.Duration {
	return time.Duration(least+n.dice.IntN(most-least)) * time.Millisecond
}

func (n *nemesis) note(kind, format string, args ...any) {
	n.done[kind]++
	n.diary = append(n.diary, fmt.Sprintf("%8.3f s  %s", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...)))
}

// harmed tells whether something is at fault already.
func (n *nemesis) harmed(what string) bool {
	return slices.ContainsFunc(n.due, func(r repair) bool { return r.what == what })
}

func (n *nemesis) later(what string, after time.Duration, undo func()) {
	n.due = append(n.due, repair{what, time.Now().Add(after), undo})
}

// repair undoes what is due, and starts again what has ended by itself because of a fault.
func (n *nemesis) repair(now time.Time) {
	n.due = slices.DeleteFunc(n.due, func(r repair) bool {
		if r.at.After(now) {
			return false
		}
		r.undo()
		return true
	})
	for _, p := range n.parts {
		if !n.harmed(p.name) {
			n.revive(p)
		}
	}
}

// kill ends a process as kill -9 does, also one that is paused.
func (n *nemesis) kill() {
	p := n.parts[n.dice.IntN(len(n.parts))]
	wait := n.span(50, 1500)
	if p.running.Ended() {
		return
	}
	n.note("kills", "kill -9 %s", p.name)
	p.running.Kill()
	n.later(p.name, wait, func() { n.revive(p) })
}

// pause stops a process for longer than every timeout of the service.
func (n *nemesis) pause() {
	p := n.parts[n.dice.IntN(len(n.parts))]
	length := pauseLength + n.span(0, 1000)
	if n.harmed(p.name) || p.running.Ended() {
		return
	}
	life := p.running
	n.note("pauses", "stop %s for %s", p.name, length)
	n.signal(p, syscall.SIGSTOP)
	n.later(p.name, length, func() {
		if !life.Ended() {
			n.signal(p, syscall.SIGCONT)
		}
	})
}

// stopDatabase stops PostgreSQL without a checkpoint or a goodbye.
func (n *nemesis) stopDatabase() {
	wait := n.span(50, 1500)
	if n.harmed("database") {
		return
	}
	n.note("database stops", "stop PostgreSQL hard")
	require.NoError(n.t, n.server.Kill())
	n.later("database", wait, func() {
		ctx, cancel := context.WithTimeout(n.t.Context(), testkit.Wait)
		defer cancel()
		require.NoError(n.t, n.server.Restart(ctx))
	})
}

// harmLink cuts a link, slows it down, or lets it fall silent in one direction: half open.
func (n *nemesis) harmLink() {
	name := slices.Sorted(maps.Keys(n.links))[n.dice.IntN(len(n.links))]
	kind, length, delay := n.dice.IntN(3), n.span(200, 4000), 50+n.dice.IntN(1500)
	if n.harmed(name) {
		return
	}
	l, undo := n.links[name], n.links[name].Recover
	switch kind {
	case 0:
		n.note("cuts", "cut %s for %s", name, length)
		l.Cut()
		undo = func() { require.NoError(n.t, l.Mend()) }
	case 1:
		n.note("delays", "delay %s by %d ms for %s", name, delay, length)
		l.Slow(delay)
	default:
		n.note("half-open links", "swallow the answers of %s for %s", name, length)
		l.Silence()
	}
	n.later(name, length, undo)
}

// loseCommit loses the next COMMIT of a process, or its reply.
func (n *nemesis) loseCommit() {
	i, fault := n.dice.IntN(len(n.wires)), testkit.LoseReply
	if n.dice.IntN(2) == 0 {
		fault = testkit.LoseCommit
	}
	n.note("lost commits", "lose a COMMIT of %s (reply: %t)", n.parts[i].name, fault == testkit.LoseReply)
	n.wires[i].OnNextCommit(fault)
}

// calls and events are the provider's faults, without those that a rule of a test holds by hand.
var (
	calls = []sandbox.FaultRule{
		{Operation: sandbox.OpAny, Kind: sandbox.FaultDelay, DelayMS: 1500},
		{Operation: sandbox.OpAny, Kind: sandbox.FaultDrop},
		{Operation: sandbox.OpCreateIntent, Kind: sandbox.FaultError500},
		{Operation: sandbox.OpConfirmIntent, Kind: sandbox.FaultError500},
		{Operation: sandbox.OpRefund, Kind: sandbox.FaultError500},
		{Operation: sandbox.OpAny, Kind: sandbox.FaultError500Undone},
		{Operation: sandbox.OpAny, Kind: sandbox.FaultError500Before},
		{Operation: sandbox.OpCharge, Kind: sandbox.FaultConflict409},
		{Operation: sandbox.OpRefund, Kind: sandbox.FaultConflict409},
		{Operation: sandbox.OpAny, Kind: sandbox.FaultRateLimit429, RetryAfter: 1},
		{Operation: sandbox.OpCharge, Kind: sandbox.FaultDecline},
		{Operation: sandbox.OpRefund, Kind: sandbox.FaultDecline},
		{Operation: sandbox.OpCharge, Kind: sandbox.FaultProcessing},
		{Operation: sandbox.OpConfirmIntent, Kind: sandbox.FaultHold},
		{Operation: sandbox.OpRefund, Kind: sandbox.FaultHold},
		{Operation: sandbox.OpCreateIntent, Kind: sandbox.FaultHoldBefore},
	}
	events = []sandbox.FaultRule{
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultLate, DelayMS: 1000},
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultTwice},
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultReorder},
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultLost},
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultForged},
		{Operation: sandbox.OpEvent, Kind: sandbox.FaultReplayLate},
	}
)

// upsetProvider replaces the provider's faults.
func (n *nemesis) upsetProvider() {
	var rules []sandbox.FaultRule
	for _, of := range [][]sandbox.FaultRule{calls, calls, calls, events, events} {
		r := of[n.dice.IntN(len(of))]
		r.Times = 1 + n.dice.IntN(4)
		rules = append(rules, r)
		n.note("provider faults", "provider: %d times %s at %s", r.Times, r.Kind, r.Operation)
	}
	require.NoError(n.t, n.Sandbox.SetFaults(rules))
}

// finishProcessing lets the provider decide the charges that it has left in processing.
func (n *nemesis) finishProcessing() {
	for _, c := range n.Sandbox.Ledger().Charges {
		if c.Status == "pending" {
			_ = n.Sandbox.FinishProcessing(c.ID, n.dice.IntN(2) == 0) // it may have ended since
		}
	}
	for _, r := range n.Sandbox.Ledger().Refunds {
		if r.Status == "pending" {
			_ = n.Sandbox.FinishRefund(r.ID)
		}
	}
}

// jobless finds what is undecided and has no live job, in one snapshot.
const jobless = `(
	SELECT tenant_id, order_id, '' AS refund_id, 'charge-order' AS kind FROM payments WHERE status = 'pending'
	UNION ALL SELECT tenant_id, order_id, id::text, 'refund-charge' FROM refunds WHERE status = 'pending'
) w WHERE NOT EXISTS (
	SELECT FROM river_job j WHERE j.kind = w.kind AND j.finalized_at IS NULL
		AND j.args->>'order_id' = w.order_id::text AND coalesce(j.args->>'refund_id', '') = w.refund_id)`

// look checks what must hold at any moment: nothing waits for a job that does not exist, and no two transactions have
// waited for each other. A crash of the database forgets the deadlocks.
func (n *nemesis) look() {
	if found := n.count(jobless); found > 0 {
		n.violation("%d charges or refunds are pending without a live job", found)
	}
	deadlocks := max(0, n.count(`pg_stat_database, generate_series(1, deadlocks) WHERE datname = 'orders'`))
	if deadlocks > n.deadlocks {
		n.violation("PostgreSQL has resolved %d deadlocks", deadlocks-n.deadlocks)
	}
	n.deadlocks = deadlocks
	n.witness()
}

// witness notes when the database has first shown an order, and when as cancelled: an operation whose effect was seen has
// taken effect by then, although its client is still waiting for the answer. Without it, the operations that are answered
// only after healing would be concurrent with all others, and the histories too many to check.
func (n *nemesis) witness() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var ids []string
	err := n.DB.QueryRow(ctx, `SELECT array_agg(id::text) || array_agg('cancelled ' || id) FILTER (WHERE status = 'cancelled')
		FROM orders`).Scan(&ids)
	if err != nil {
		return
	}
	for _, id := range ids {
		if n.seen[id] == 0 {
			n.seen[id] = n.now()
		}
	}
}
