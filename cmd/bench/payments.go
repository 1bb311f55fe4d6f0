package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// soonAfter is the pause between the two orders of a pair. The time to the ledger is measured for the second.
	soonAfter = 20 * time.Millisecond
	// The run fails when a charge is not in the ledger by then.
	ledgerWait = time.Minute
	// drainWait bounds how long a backlog is observed. The rate counts what was settled by then.
	drainWait = time.Minute
	drainPoll = 200 * time.Millisecond // a poll counts the pending payments, which takes PostgreSQL more than a millisecond
)

// payments are the figures of the worker.
type payments struct {
	First  latency `json:"ledger_after_order"`
	Second latency `json:"ledger_after_second_order"`

	Accepted float64 `json:"accepted_per_second"` // by the API while the worker is stopped
	Drained  float64 `json:"drained_per_second"`  // by the worker while the API is idle
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

// measurePayments measures a worker with its default settings. Afterwards the worker is stopped and no charge is pending.
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

// measureLedger measures the time from the 201 to the provider's ledger: first for single orders, then for orders placed
// soon after another. The pauses vary, so that orders arrive at all phases of the worker's polling.
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

// toLedger places an order (in a pair: after another one) and returns the time from its 201 until its charge was in the
// ledger. It waits for all charges that it caused.
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

// measureDrain measures three phases: the API accepts orders while no worker runs, the worker charges them while no orders
// arrive, and both work at the same time.
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

// drain waits until no payment is pending, for at most limit, and returns the payments settled per second.
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
