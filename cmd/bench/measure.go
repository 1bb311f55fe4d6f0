package main

import (
	"context"
	"fmt"
	"time"
)

// The names of the measurements, as reports show them.
const (
	baselineOne  = "baseline: place-order, 1 line"
	placeOne     = "place-order, 1 line"
	baselineFive = "baseline: place-order, 5 lines"
	placeFive    = "place-order, 5 lines"
	replay       = "replay of place-order"
	getOrder     = "get-order"
	notModified  = "get-order, 304"
	staleMatch   = "stale If-Match, 409"
	oneKey       = "20 duplicates of one key"
)

// typical is the number of clients for loads that are measured with one number only.
const typical = 8

// measure fills the report. Payments come first, while the sandbox's ledger is short. Then the worker is stopped, because
// the baseline's orders are not charged either.
func (b *bench) measure(ctx context.Context, r *report) error {
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	if err := b.measurePayments(ctx, &r.Payments); err != nil {
		return err
	}
	for _, clients := range b.clients {
		for round := range b.rounds {
			b.say("%d clients, round %d of %d", clients, round+1, b.rounds)
			if err := b.round(ctx, r, clients, round); err != nil {
				return fmt.Errorf("%d clients: %w", clients, err)
			}
		}
	}
	if b.profile != "" {
		if err := b.writeProfile(ctx); err != nil {
			return err
		}
	}
	if b.statements {
		return b.reportStatements(ctx, r)
	}
	return nil
}

// warmUp fills caches and pools, and makes PostgreSQL replace the plans that it made for empty tables. Those plans (also
// of foreign key checks) use sequential scans until the first ANALYZE, which autovacuum runs only a minute later.
func (b *bench) warmUp(ctx context.Context) error {
	b.say("warming up")
	placed := newShelf(typical)
	if _, err := b.load(ctx, typical, b.writing(), b.placing(1, placed)); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, next := range []source{b.placing(maxLines, newShelf(typical)), b.replaying(placed), b.reading(placed)} {
		if _, err := b.load(ctx, typical, b.short(), next); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	if _, err := b.db.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return nil
}

// round measures everything once. Baseline and service alternate in going first.
func (b *bench) round(ctx context.Context, r *report, clients, round int) error {
	placed := newShelf(clients)
	pairs := []struct {
		baseline, service string
		lines             int
	}{{baselineOne, placeOne, 1}, {baselineFive, placeFive, maxLines}}
	for _, p := range pairs {
		turns := []func() error{
			func() error { return b.measureBaseline(ctx, r, p.baseline, clients, p.lines) },
			func() error {
				return b.measureLoad(ctx, r, p.service, clients, b.writing(), b.placing(p.lines, placed))
			},
		}
		for i := range turns {
			if err := turns[(i+round)%len(turns)](); err != nil {
				return err
			}
		}
	}
	return b.roundOfReads(ctx, r, clients, placed)
}

func (b *bench) roundOfReads(ctx context.Context, r *report, clients int, placed *shelf) error {
	stale, err := b.conflicting(ctx, placed)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		next source
	}{
		{replay, b.replaying(placed)}, {getOrder, b.reading(placed)}, {notModified, b.revalidating(placed)}, {staleMatch, stale},
	} {
		if err := b.measureLoad(ctx, r, m.name, clients, b.short(), m.next); err != nil {
			return err
		}
	}
	if clients != b.clients[0] { // the size of a group does not depend on the number of clients
		return nil
	}
	groups, err := b.sendDuplicates(ctx, b.short())
	if err != nil {
		return fmt.Errorf("%s: %w", oneKey, err)
	}
	r.add(measurement{Name: oneKey, Clients: duplicates}.of(groups))
	return nil
}

func (b *bench) measureBaseline(ctx context.Context, r *report, name string, clients, lines int) error {
	if b.noBaseline {
		return nil
	}
	rate, err := b.baseline(ctx, clients, lines, b.writing())
	if err != nil {
		return err
	}
	r.add(measurement{Name: name, Clients: clients, PerSecond: rate})
	return nil
}

// measureLoad measures one load, and the API's CPU and allocations for it.
func (b *bench) measureLoad(
	ctx context.Context, r *report, name string, clients int, length time.Duration, next source,
) error {
	before, err := b.api.usage(ctx)
	if err != nil {
		return err
	}
	result, err := b.load(ctx, clients, length, next)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := b.api.usage(ctx)
	if err != nil {
		return err
	}
	used, n := after.minus(before), float64(len(result.times))
	m := measurement{Name: name, Clients: clients}.of(result)
	m.CPU, m.Objects, m.Bytes = used.cpu/n*1000, used.objects/n, used.bytes/n
	r.add(m)
	r.APIResident = max(r.APIResident, used.resident)
	return nil
}
