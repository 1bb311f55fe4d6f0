package scenario

import (
	"example.com/orders/client"
	"example.com/orders/client/openapi"
	"example.com/orders/internal/dev/sandbox"
)

// crashStep is a step of the charge's protocol at which the worker is killed.
type crashStep struct {
	label   string
	call    string // the provider's call that is held
	kind    string // before or after the provider has done it
	charged bool   // the card is charged by then
}

// crashSteps ends with the answer. The transaction that stores it sends COMMIT with its writes, so PostgreSQL carries it out
// whatever becomes of the worker.
func crashSteps() []crashStep {
	return []crashStep{
		{"while the intent is created", sandbox.OpCreateIntent, sandbox.FaultHoldBefore, false},
		{"after the intent is created, before its id is stored", sandbox.OpCreateIntent, sandbox.FaultHold, false},
		{"while the confirmation is on its way", sandbox.OpConfirmIntent, sandbox.FaultHoldBefore, false},
		{"after the card is charged, before the answer", sandbox.OpConfirmIntent, sandbox.FaultHold, true},
	}
}

// afterCharge is the step at which a crash is the most dangerous, counted from 1.
const afterCharge = 4

func crashKnob() Knob {
	var labels []string
	for _, s := range crashSteps() {
		labels = append(labels, s.label)
	}
	return choose("step", "when the worker is killed", afterCharge, labels...)
}

func killWorker(r *Run) {
	step := crashSteps()[r.knobs["step"]-1]
	r.faults(sandbox.FaultRule{Operation: step.call, Kind: step.kind, Times: 1}, lostEvents())
	r.order = must2(r.as("alice").PlaceOrder(r.ctx, basket(mug, 1), client.WithKey(r.key("cart"))))(r).Value.ID
	r.must(r.Sandbox.WaitHeld(r.ctx, 1))
	r.showLedger(r.order)
	equal(r, step.charged, r.account(r.order).charges == 1, "the worker is stopped %s", step.label)
	// The crash is that of a leader, whose successor River admits only when the dead one's term has run out.
	r.until("River's leader", func() bool { return r.Count(r, "river_leader") > 0 })
	r.mark("worker", "kill -9 %d", r.Worker.PID())
	r.must(r.Worker.Kill())
	r.Sandbox.ClearFaults()
	equal(r, openapi.PaymentStatusPending, must2(r.quiet().GetPayment(r.ctx, r.order))(r).Value.Status,
		"the worker is dead, and its commit never came")
	r.must(r.Worker.Start())
	r.mark("worker", "A new worker starts, process %d. The dead one's job still looks like one that is being worked.", r.Worker.PID())
}

func resumeCharge(r *Run) {
	step := crashSteps()[r.knobs["step"]-1]
	r.say("", "The killed worker's job is taken over once it counts as crashed, which takes up to 20 s here.")
	r.noJobs(r.order)
	r.paid(r.order, openapi.PaymentStatusSucceeded)
	r.say("", "The order is %s. What the provider was asked for it:", r.order)
	r.showAttempts(r.order)
	r.check(true, "another worker took the job over; the payment has succeeded")
	if step.charged {
		equal(r, 1, len(r.confirmations(r.order)),
			"it read the intent by its id and found it succeeded: the provider was not asked to charge again")
	}
	r.chargedOnce(r.order, 1250)
}
