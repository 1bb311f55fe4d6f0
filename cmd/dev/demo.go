package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// demoLimit ends the tour whatever happens; it takes well under a minute.
	demoLimit = 3 * time.Minute
	// chapterLimit is for a machine that is busy with other things.
	chapterLimit = time.Minute
)

// chapter is one promise of the service: shown, and checked.
type chapter struct {
	title   string
	promise string
	run     func(context.Context, *step) error
}

// tour is the chapters in order. The crash comes first because a crashed worker's job is taken over only once nobody
// can still be working on it; the other chapters are told meanwhile.
func tour() []chapter {
	return []chapter{
		{"Kill the worker in mid-charge", "nothing is lost and nothing is charged twice; chapter 18 tells how it ends", killWorker},
		{"Place an order", "one order, one charge, after the answer", placeOrder},
		{"Lose the answer and try again", "the retry gets the first answer; nothing happens twice", loseAnswer},
		{"Twenty duplicates at once", "one of them works, the others get its answer, byte for byte", twentyDuplicates},
		{"Use a key again for something else", "refused, and nothing happens", reuseKey},
		{"Use somebody else's key", "keys belong to their actor: it is a new order", borrowKey},
		{"Pay with a card that is declined", "the order is cancelled, its stock is back, nothing is charged", declinedCard},
		{"Edit what somebody else has edited", "no silent overwrite: 428, 409, then read again and merge", editTwice},
		{"Change the address while it is shipped", "one wins; no parcel leaves for an address that the order no longer shows",
			addressAgainstShipment},
		{"Cancel while it is shipped", "one wins; no cancelled order is shipped, and its money is back once", cancelAgainstShipment},
		{"Let the provider answer 500 and save it", "the intent's state tells what happened; one charge", savedError},
		{"Cancel after the card was charged", "the charge won at the provider: it is refunded, once", cancelLoses},
		{"Cancel before the card is charged", "the cancellation won at the provider: nothing is charged", cancelWins},
		{"Deliver an event three times", "it is received once, and changes nothing that is known", repeatedEvent},
		{"Eight refunds where three fit", "three are accepted; nobody gets back more than was paid", eightRefunds},
		{"A refund fails a day later", "the balance is back, an operator hears of it, and it can be refunded again", lateFailure},
		{"Forty buyers, thirty lamps", "thirty orders, ten refusals, and nobody sees a version conflict", fortyBuyers},
		{"The killed worker's charge", "another worker reads what the provider holds, and finishes it: one charge", resumeCharge},
		{"The books", "what was charged, refunded and sold adds up, for every order and sku", balanceBooks},
		{"The metrics", "/metrics of the API and the worker tell the same story", readMetrics},
	}
}

// runDemo tells and checks the tour on a service of its own: no address, no database and no setting of the user's is
// touched or looked at. It fails if any promise is broken.
func runDemo(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	d := newDemo(newStory(os.Stdout))
	defer func() {
		err = errors.Join(err, d.stop())
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) && d.parts.used() {
			fmt.Fprintf(os.Stderr, "\nThe last lines that the parts of the service logged:\n%s\n", d.parts)
		}
	}()
	if err := d.start(ctx); err != nil {
		return err
	}
	begun := time.Now()
	for i, c := range tour() {
		d.told = append(d.told, d.tell(ctx, i+1, c))
		if ctx.Err() != nil {
			return fmt.Errorf("the demo was stopped: %w", context.Cause(ctx))
		}
	}
	return d.story.summary(d.told, time.Since(begun))
}

// tell runs one chapter. What it could not do counts as a broken promise.
func (d *demo) tell(ctx context.Context, n int, c chapter) *step {
	ctx, cancel := context.WithTimeout(ctx, chapterLimit)
	defer cancel()
	s := &step{demo: d, number: n, chapter: c}
	d.story.headline(n, c.title, c.promise)
	begun := time.Now()
	if err := c.run(ctx, s); err != nil {
		s.check(false, "%v", err)
	}
	s.took = time.Since(begun)
	return s
}
