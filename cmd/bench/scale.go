package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/dev/bulk"
)

const (
	// purgeInterval keeps the worker purging: with the default a million keys would take more than an hour.
	purgeInterval = 5 * time.Second
	// purgeWait bounds the wait for the keys of one round to be gone.
	purgeWait = 10 * time.Minute
	// Polls are rare, because counting a million keys takes a while.
	keyPoll = 500 * time.Millisecond
)

// scale is the figures of measureScale.
type scale struct {
	Rows    int        `json:"rows"`
	Loading float64    `json:"loading_seconds"`
	Size    int64      `json:"database_bytes"`
	Compare []compared `json:"compared"`

	Expired   int     `json:"expired"`
	Purged    float64 `json:"purged_per_second"`
	PlainP99  float64 `json:"place_order_p99_ms"`
	PurgedP99 float64 `json:"place_order_p99_ms_while_purging"`
	PlainRate float64 `json:"place_order_per_second"`
	PurgeRate float64 `json:"place_order_per_second_while_purging"`
}

// compared is one load before and after loading.
type compared struct {
	Name      string  `json:"name"`
	Before    float64 `json:"per_second_before"`
	After     float64 `json:"per_second_after"`
	P99Before float64 `json:"p99_ms_before"`
	P99After  float64 `json:"p99_ms_after"`
}

// measureScale measures some loads with few rows, loads many rows, and measures again on recent orders and on the loaded
// ones. Then it measures place-order while expired keys are purged.
func (b *bench) measureScale(ctx context.Context, r *report) error {
	r.Scale = &scale{Rows: b.rows, Expired: b.expired}
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	templates, err := b.placeTemplates(ctx)
	if err != nil {
		return err
	}
	before, err := b.scaleRounds(ctx, nil)
	if err != nil {
		return err
	}
	if err := b.loadRows(ctx, r.Scale, templates); err != nil {
		return err
	}
	after, err := b.scaleRounds(ctx, b.copies(templates))
	if err != nil {
		return err
	}
	r.Scale.compare(before, after)
	return b.measurePurge(ctx, r.Scale, templates)
}

// placeTemplates places an order of each actor and has it charged.
func (b *bench) placeTemplates(ctx context.Context) ([]copiedOrder, error) {
	if err := b.startWorker(ctx, nil); err != nil {
		return nil, err
	}
	c, err := dial(ctx, b.api.host)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	templates := make([]copiedOrder, actors)
	for i := range templates {
		t := &templates[i]
		t.body = orderBody(b.skus, 1)
		t.Actor, t.Key = actor(i), uuid.NewString()
		raw := b.raw(http.MethodPost, "/v1/orders", i, t.body, "Idempotency-Key: "+t.Key)
		err := c.do(request{raw: raw, status: http.StatusCreated, answer: func(a answer) { t.OrderID = idOf(a.body) }})
		if err != nil {
			return nil, err
		}
	}
	if _, err := b.drain(ctx, drainWait); err != nil {
		return nil, err
	}
	return templates, b.stopWorker()
}

// copiedOrder is an order that is copied, with the body that placed it.
type copiedOrder struct {
	bulk.Template
	body string
}

func bulkTemplates(templates []copiedOrder) []bulk.Template {
	list := make([]bulk.Template, len(templates))
	for i, t := range templates {
		list[i] = t.Template
	}
	return list
}

// copied makes requests for the loaded orders.
type copied struct{ replay, get source }

func (b *bench) copies(templates []copiedOrder) *copied {
	anyOrder := func() (n, actor int) { n = rand.IntN(b.rows); return n, n % actors }
	return &copied{
		replay: func(int) request {
			n, actor := anyOrder()
			return request{status: http.StatusCreated, raw: b.raw(http.MethodPost, "/v1/orders", actor, templates[actor].body,
				"Idempotency-Key: "+bulk.Key(n))}
		},
		get: func(int) request {
			n, actor := anyOrder()
			return request{status: http.StatusOK, raw: b.raw(http.MethodGet, "/v1/orders/"+bulk.OrderID(n), actor, "")}
		},
	}
}

// timed is a load and how long it is to last.
type timed struct {
	name   string
	length time.Duration
	next   source
}

// scaleRounds measures the loads in rounds. Without copies only recent orders are asked for.
func (b *bench) scaleRounds(ctx context.Context, of *copied) (map[string][]sent, error) {
	all := map[string][]sent{}
	for round := range b.rounds {
		b.say("round %d of %d", round+1, b.rounds)
		placed := newShelf(typical)
		loads := []timed{
			{placeOne, b.writing(), b.placing(1, placed)}, {replay, b.short(), b.replaying(placed)}, {getOrder, b.short(), b.reading(placed)},
		}
		if of != nil {
			loads = append(loads, timed{replay + anyLoaded, b.short(), of.replay}, timed{getOrder + anyLoaded, b.short(), of.get})
		}
		for _, l := range loads {
			s, err := b.load(ctx, typical, l.length, l.next)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			all[l.name] = append(all[l.name], s)
		}
	}
	return all, nil
}

const anyLoaded = ", any of the loaded"

func (s *scale) compare(before, after map[string][]sent) {
	for _, name := range []string{placeOne, replay, replay + anyLoaded, getOrder, getOrder + anyLoaded} {
		c := compared{Name: name, After: medianOf(after[name], sent.perSecond), P99After: medianOf(after[name], p99)}
		old := before[strings.TrimSuffix(name, anyLoaded)]
		c.Before, c.P99Before = medianOf(old, sent.perSecond), medianOf(old, p99)
		s.Compare = append(s.Compare, c)
	}
}

func p99(s sent) float64 { return s.percentile(99) }

func medianOf(all []sent, of func(sent) float64) float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	return median(values)
}

// loadRows loads the copies and runs VACUUM ANALYZE, as autovacuum would later.
func (b *bench) loadRows(ctx context.Context, s *scale, templates []copiedOrder) error {
	b.say("loading %d orders, keys and jobs", b.rows)
	began := time.Now()
	err := b.bulkLoad(ctx, templates, bulk.Rows{Tenant: tenant, Orders: b.rows})
	if err != nil {
		return err
	}
	if _, err := b.db.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	if _, err := b.db.Exec(ctx, `CHECKPOINT`); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.Loading = time.Since(began).Seconds()
	return b.db.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&s.Size)
}

func (b *bench) bulkLoad(ctx context.Context, templates []copiedOrder, rows bulk.Rows) error {
	conn, err := pgx.Connect(ctx, b.server.URL("orders"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return bulk.Load(ctx, conn, bulkTemplates(templates), rows, func(loaded int) { b.say("loaded %d", loaded) })
}

// measurePurge compares, in each round, place-order without a purge with place-order during a purge. The queue of charges
// is paused, so that the worker only purges.
func (b *bench) measurePurge(ctx context.Context, s *scale, templates []copiedOrder) error {
	if _, err := b.db.Exec(ctx, `UPDATE river_queue SET paused_at = now() WHERE name = 'default'`); err != nil {
		return fmt.Errorf("pause the charges: %w", err)
	}
	if err := b.startWorker(ctx, map[string]string{"PURGE_INTERVAL": purgeInterval.String()}); err != nil {
		return err
	}
	plain, purging := make([]sent, b.rounds), make([]sent, b.rounds)
	var rates []float64
	for round := range b.rounds {
		b.say("purge, round %d of %d", round+1, b.rounds)
		var err error
		if plain[round], err = b.load(ctx, typical, b.writing(), b.placing(1, newShelf(typical))); err != nil {
			return err
		}
		rows := bulk.Rows{Tenant: tenant, Expired: max(1, b.expired/b.rounds), ExpiredFrom: round * b.expired}
		if err := b.bulkLoad(ctx, templates, rows); err != nil {
			return err
		}
		rate, err := b.whilePurging(ctx, &purging[round])
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	s.PlainRate, s.PurgeRate = medianOf(plain, sent.perSecond), medianOf(purging, sent.perSecond)
	s.PlainP99, s.PurgedP99 = medianOf(plain, p99), medianOf(purging, p99)
	s.Purged = median(rates)
	return b.stopWorker()
}

// whilePurging places orders while the purge runs, for at most the length of a measurement. Then it waits until all expired
// keys are removed, and returns the keys removed per second.
func (b *bench) whilePurging(ctx context.Context, result *sent) (perSecond float64, err error) {
	all, err := b.expiredKeys(ctx)
	if err != nil {
		return 0, err
	}
	if all, err = b.awaitKeys(ctx, func(left int) bool { return left < all || left == 0 }); err != nil {
		return 0, err
	}
	began := time.Now()
	if *result, err = b.load(ctx, typical, b.writing(), b.placing(1, newShelf(typical))); err != nil {
		return 0, err
	}
	left, err := b.expiredKeys(ctx)
	if err != nil {
		return 0, err
	}
	if left == 0 {
		b.say("all expired keys were gone before the measurement ended: its figures say less; ask for more with -expired")
	}
	if _, err = b.awaitKeys(ctx, func(left int) bool { return left == 0 }); err != nil {
		return 0, err
	}
	return float64(all) / time.Since(began).Seconds(), nil
}

func (b *bench) awaitKeys(ctx context.Context, done func(left int) bool) (left int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, purgeWait, errors.New("expired keys were not purged in time"))
	defer cancel()
	for {
		if left, err = b.expiredKeys(ctx); err != nil || done(left) {
			return left, err
		}
		if pause(ctx, keyPoll) != nil {
			return left, context.Cause(ctx)
		}
	}
}

func (b *bench) expiredKeys(ctx context.Context) (n int, err error) {
	err = b.db.QueryRow(ctx, `SELECT count(*) FROM idempotency_keys WHERE expires_at <= now()`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count expired keys: %w", err)
	}
	return n, nil
}

func (r *report) scaleLines() string {
	s := r.Scale
	if s == nil {
		return ""
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "With %d orders, keys and finished jobs loaded (in %.0f s; the database has %.1f GiB), 8 clients:\n\n",
		s.Rows, s.Loading, float64(s.Size)/(1<<30))
	lines.WriteString("| load | per second before | after | ratio | p99 ms before | after |\n|---|---:|---:|---:|---:|---:|\n")
	for _, c := range s.Compare {
		fmt.Fprintf(&lines, "| %s | %.0f | %.0f | %.2f | %.1f | %.1f |\n",
			c.Name, c.Before, c.After, c.After/c.Before, c.P99Before, c.P99After)
	}
	fmt.Fprintf(&lines, "\nWhile %d expired keys are purged (%.0f a second): place-order %.0f a second instead of %.0f, p99 %.1f ms instead of %.1f ms.\n",
		s.Expired, s.Purged, s.PurgeRate, s.PlainRate, s.PurgedP99, s.PlainP99)
	return lines.String()
}
