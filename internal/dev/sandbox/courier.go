package sandbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// How events are delivered: with backoff until an answer of 2xx, as Stripe does for three days, but bounded to what a
// test or a demo can wait for: ten tries in about half a minute.
const (
	deliveryTries   = 10
	deliveryTimeout = 10 * time.Second
	deliveryBackoff = 100 * time.Millisecond // doubles with each try
	maxBackoff      = 10 * time.Second
	deliverers      = 16          // posts at once
	reorderWait     = time.Second // how long a reordered event waits for a next one
)

// What a Delivery can be.
const (
	DeliveryEvent  = "event"       // the event itself, once or again
	DeliveryForged = "forged"      // other content under a signature that is not valid
	DeliveryReplay = "replay_late" // the event under its valid signature of an hour ago
)

// Delivery is one POST of an event. Status is that of the answer, 0 without one. Try counts from 1.
type Delivery struct {
	EventID string `json:"event_id"`
	Type    string `json:"type"`
	Kind    string `json:"kind"`
	Try     int    `json:"try"`
	Status  int    `json:"status"`
}

// parcel is a delivery to be made.
type parcel struct {
	Delivery
	body []byte
	then *parcel // to be sent after the first try of this one
}

// courier delivers events in the background. Up to deliverers goroutines live while there is work.
type courier struct {
	client *http.Client
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // ended by stop; deliveries belong to no request
	stop   context.CancelFunc

	mu       sync.Mutex
	url      string
	secrets  []string
	queue    []*parcel
	working  int
	pending  int     // parcels that are queued, under way or scheduled
	heldBack *parcel // waits for the next one, to be sent after it
	done     []Delivery
	changed  chan struct{}
}

func newCourier(cfg Config) *courier {
	ctx, stop := context.WithCancel(context.Background())
	return &courier{
		client: &http.Client{
			Timeout:       deliveryTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log: cfg.Log, ctx: ctx, stop: stop, url: cfg.EventsURL, secrets: cfg.EventSecrets, changed: make(chan struct{}),
	}
}

// SetEventsURL says where events are delivered from now on; empty: nowhere. Deliveries that are under way are tried again
// at the new address.
func (s *Sandbox) SetEventsURL(url string) {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	s.courier.url = url
}

// SetEventSecrets replaces the secrets that sign events, as an operator does who rotates one. It takes at least one.
func (s *Sandbox) SetEventSecrets(secrets ...string) {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	s.courier.secrets = secrets
}

// Deliveries returns every POST of an event that has ended, in that order.
func (s *Sandbox) Deliveries() []Delivery {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	return append([]Delivery{}, s.courier.done...)
}

// WaitEventsDelivered blocks until no delivery is under way or scheduled, or ctx ends. An event whose tries are used up
// counts as delivered: Stripe gives up, too.
func (s *Sandbox) WaitEventsDelivered(ctx context.Context) error {
	c := s.courier
	return wait(ctx, &c.mu, &c.changed, "deliveries of events", func() bool { return c.pending == 0 })
}

// send takes an event on its way, which a fault may make longer.
func (c *courier) send(ev *event, f fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.url == "" || f.kind == FaultLost || c.ctx.Err() != nil {
		return
	}
	body, err := json.Marshal(ev)
	if err != nil {
		panic(err) // plain structs of texts and numbers always have a JSON form
	}
	p := &parcel{Delivery: Delivery{EventID: ev.ID, Type: ev.Type, Kind: DeliveryEvent}, body: body}
	c.pending++
	switch f.kind {
	case FaultReorder:
		if c.heldBack == nil {
			c.heldBack = p
			time.AfterFunc(reorderWait, func() { c.letGo(p) })
			return
		}
	case FaultLate:
		time.AfterFunc(f.delay, func() { c.push(p) })
		return
	case FaultTwice:
		c.add(p.again(DeliveryEvent, body))
	case FaultForged:
		c.add(p.again(DeliveryForged, forge(ev)))
	case FaultReplayLate:
		c.add(p.again(DeliveryReplay, body))
	}
	p.then, c.heldBack = c.heldBack, nil
	c.enqueue(p)
}

// again is another delivery about the same event.
func (p *parcel) again(kind string, body []byte) *parcel {
	return &parcel{Delivery: Delivery{EventID: p.EventID, Type: p.Type, Kind: kind}, body: body}
}

func (c *courier) add(p *parcel) {
	c.pending++
	c.enqueue(p)
}

// letGo sends a reordered event that no other one followed.
func (c *courier) letGo(p *parcel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heldBack == p {
		c.heldBack = nil
		c.enqueue(p)
	}
}

func (c *courier) push(p *parcel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(p)
}

func (c *courier) enqueue(p *parcel) {
	c.queue = append(c.queue, p)
	if c.working < deliverers {
		c.working++
		go c.work()
	}
}

// work delivers until there is nothing to deliver.
func (c *courier) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		p := c.queue[0]
		c.queue = c.queue[1:]
		url, secrets := c.url, c.secrets
		c.mu.Unlock()
		p.Try++
		p.Status = c.post(url, secrets, p)
		c.mu.Lock()
		c.ended(p)
	}
	c.working--
}

// ended is what follows a try.
func (c *courier) ended(p *parcel) {
	c.done = append(c.done, p.Delivery)
	if p.then != nil {
		c.enqueue(p.then)
		p.then = nil
	}
	delivered := p.Status >= 200 && p.Status < 300
	if !delivered && p.Kind == DeliveryEvent && p.Try < deliveryTries && c.ctx.Err() == nil {
		time.AfterFunc(min(deliveryBackoff<<(p.Try-1), maxBackoff), func() { c.push(p) })
		return
	}
	if !delivered && p.Kind == DeliveryEvent {
		c.log.Error("event not delivered", "event", p.EventID, "type", p.Type, "tries", p.Try, "status", p.Status)
	}
	c.pending--
	close(c.changed)
	c.changed = make(chan struct{})
}
