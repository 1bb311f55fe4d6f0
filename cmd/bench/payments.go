package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// soonAfter is how long after an order the next one is placed, whose way to the ledger is timed too.
	soonAfter = 20 * time.Millisecond
	// A charge that is not in the ledger by then ends the run with an error.
	ledgerWait = time.Minute
	// drainWait bounds how long a backlog is watched; the rate is that of what was done by then.
	drainWait = time.Minute
	drainPoll = 200 * time.Millisecond // each poll counts what is left, which costs PostgreSQL a millisecond and more
)

// payments are the figures of the worker.
type payments struct {
	First  latency `json:"ledger_after_order"`
	Second latency `json:"ledger_after_second_order"`

	Accepted float64 `json:"accepted_per_second"` // by the API, the worker stopped
	Drained  float64 `json:"drained_per_second"`  // by the worker, the API idle
	// Both at once.
	AcceptedTogether float64 `json:"accepted_per_second_together"`
	DrainedTogether  float64 `json:"drained_per_second_together"`
	Resident         float64 `json:"worker_resident_bytes"`
}

// latency is percentiles in milliseconds.
type latency struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
}

func latencyOf(s sent) latency {
	return latency{len(s.times), s.percentile(50), s.percentile(95), s.percentile(99)}
}

// measurePayments measures with a worker at its defaults and leaves it stopped, with nothing left to charge.
func (b *bench) measurePayments(ctx context.Context, p *payments) error {
	if err := b.startWorker(ctx, nil); err != nil {
		return err
	}
	b.say("draining the charges of the warm-up")
	if _, err := b.drain(ctx, drainWait); err != nil {
		return err
	}
	if err := b.measureLedger(ctx, p); err != nil {
		return fmt.Errorf("time to the ledger: %w", err)
	}
	if err := b.stopWorker(); err != nil {
		return err
	}
	if err := b.measureDrain(ctx, p); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	used, err := b.worker.usage(ctx)
	if err != nil {
		return err
	}
	p.Resident = used.resident
	return b.stopWorker()
}

// measureLedger times single orders from their 201 to the provider's ledger, and then those placed soon after another.
// The pauses differ, so that the worker's polls are met at all their phases.
func (b *bench) measureLedger(ctx context.Context, p *payments) error {
	c, err := dial(ctx, b.api.host)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	b.say("time to the ledger: %d orders, %d pairs", b.samples, b.samples)
	for _, pair := range []bool{false, true} {
		var s sent
		for range b.samples {
			if err := pause(ctx, time.Second+rand.N(500*time.Millisecond)); err != nil {
				return err
			}
			took, err := b.toLedger(ctx, c, pair)
			if err != nil {
				return err
			}
			s.times = append(s.times, took)
		}
		slices.Sort(s.times)
		if pair {
			p.Second = latencyOf(s)
		} else {
			p.First = latencyOf(s)
		}
	}
	return nil
}

// toLedger places an order, after another one in a pair, and tells how long after its 201 it stood in the ledger. It
// returns once all that it placed does.
func (b *bench) toLedger(ctx context.Context, c *client, pair bool) (time.Duration, error) {
	before := len(b.provider.Ledger().Charges)
	placed := newShelf(1)
	orders := 1
	if pair {
		orders = 2
		if err := c.do(b.placing(1, placed)(0)); err != nil {
			return 0, err
		}
		if err := pause(ctx, soonAfter); err != nil {
			return 0, err
		}
	}
	if err := c.do(b.placing(1, placed)(0)); err != nil {
		return 0, err
	}
	answered := time.Now()
	limited, cancel := context.WithTimeout(ctx, ledgerWait)
	defer cancel()
	var took time.Duration
	for n := 1; n <= orders; n++ {
		if err := b.provider.WaitCharges(limited, before+n); err != nil {
			return 0, err
		}
		if took == 0 && b.charged(placed.orders[0][orders-1].id) {
			took = time.Since(answered)
		}
	}
	return took, nil
}

func (b *bench) charged(id string) bool {
	for _, c := range slices.Backward(b.provider.Ledger().Charges) {
		if c.OrderID == id {
			return true
		}
	}
	return false
}

// measureDrain lets the API accept orders without a worker, then the worker charge them without orders coming in, and
// then both work at once.
func (b *bench) measureDrain(ctx context.Context, p *payments) error {
	b.say("orders accepted, then charges drained, then both at once")
	accepted, err := b.load(ctx, typical, b.writing(), b.placing(1, newShelf(typical)))
	if err != nil {
		return err
	}
	p.Accepted = accepted.perSecond()
	if err := b.startWorker(ctx, nil); err != nil {
		return err
	}
	if p.Drained, err = b.drain(ctx, drainWait); err != nil {
		return err
	}
	before, err := b.pending(ctx)
	if err != nil {
		return err
	}
	if accepted, err = b.load(ctx, typical, b.writing(), b.placing(1, newShelf(typical))); err != nil {
		return err
	}
	after, err := b.pending(ctx)
	if err != nil {
		return err
	}
	p.AcceptedTogether = accepted.perSecond()
	p.DrainedTogether = p.AcceptedTogether - float64(after-before)/accepted.took.Seconds()
	return nil
}

// drain waits until no payment is pending, but no longer than limit, and tells how many a second were settled.
func (b *bench) drain(ctx context.Context, limit time.Duration) (perSecond float64, err error) {
	before, err := b.pending(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for left := before; ; {
		if left == 0 || time.Since(began) > limit {
			return float64(before-left) / time.Since(began).Seconds(), nil
		}
		if err := pause(ctx, drainPoll); err != nil {
			return 0, err
		}
		if left, err = b.pending(ctx); err != nil {
			return 0, err
		}
	}
}

func (b *bench) pending(ctx context.Context) (n int, err error) {
	err = b.db.QueryRow(ctx, `SELECT count(*) FROM payments WHERE status = 'pending'`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count pending payments: %w", err)
	}
	return n, nil
}
