package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// order is a placed order: what is needed to request it again.
type order struct {
	actor int
	id    string
	etag  string
	raw   []byte // the request that placed it
}

// recent is how many orders each client remembers.
const recent = 200

// shelf remembers orders per client, so that clients need no lock.
type shelf struct{ orders [][]order }

func newShelf(clients int) *shelf { return &shelf{make([][]order, clients)} }

func (s *shelf) add(client int, o order) {
	if len(s.orders[client]) == recent {
		s.orders[client] = slices.Delete(s.orders[client], 0, 1)
	}
	s.orders[client] = append(s.orders[client], o)
}

// pick returns an order of any client. No client may add orders at the same time.
func (s *shelf) pick(client int) order {
	of := s.orders[client%len(s.orders)]
	return of[rand.IntN(len(of))]
}

const address = `{"name":"Alice Ames","line1":"1 High Street","city":"Berlin","postal_code":"10115","country":"DE"}`

// orderBody is an order of distinct skus, spread evenly over the catalogue.
func orderBody(skus, lines int) string {
	stride := skus / lines
	base := rand.IntN(stride)
	items := make([]string, lines)
	for i := range items {
		items[i] = fmt.Sprintf(`{"sku":%q,"quantity":1}`, sku(i*stride+base))
	}
	return `{"currency":"EUR","lines":[` + strings.Join(items, ",") + `],"shipping_address":` + address +
		`,"payment_method":"pm_card_visa"}`
}

// raw is a request as it goes over the wire. headers are lines without their ends.
func (b *bench) raw(method, path string, actor int, body string, headers ...string) []byte {
	var r bytes.Buffer
	fmt.Fprintf(&r, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, b.api.host, b.tokens[actor])
	for _, h := range headers {
		r.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&r, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	r.WriteString("\r\n" + body)
	return r.Bytes()
}

// placing places orders with the given number of lines and remembers them.
func (b *bench) placing(lines int, into *shelf) source {
	return func(client int) request {
		o := order{actor: rand.IntN(actors)}
		o.raw = b.raw(http.MethodPost, "/v1/orders", o.actor, orderBody(b.skus, lines), "Idempotency-Key: "+uuid.NewString())
		return request{raw: o.raw, status: http.StatusCreated, answer: func(a answer) {
			o.id, o.etag = idOf(a.body), a.header.Get("ETag")
			into.add(client, o)
		}}
	}
}

// idOf is the id in the receipt of place-order.
func idOf(body []byte) string {
	_, after, _ := bytes.Cut(body, []byte(`"id":"`))
	id, _, _ := bytes.Cut(after, []byte(`"`))
	return string(id)
}

// The sources below request orders that were placed.

func (b *bench) replaying(from *shelf) source {
	return func(client int) request { return request{raw: from.pick(client).raw, status: http.StatusCreated} }
}

func (b *bench) reading(from *shelf) source {
	return func(client int) request {
		o := from.pick(client)
		return request{raw: b.raw(http.MethodGet, "/v1/orders/"+o.id, o.actor, ""), status: http.StatusOK}
	}
}

func (b *bench) revalidating(from *shelf) source {
	return func(client int) request {
		o := from.pick(client)
		return request{
			raw:    b.raw(http.MethodGet, "/v1/orders/"+o.id, o.actor, "", "If-None-Match: "+o.etag),
			status: http.StatusNotModified,
		}
	}
}

// conflicting changes addresses with a stale ETag, so that every request is refused.
func (b *bench) conflicting(ctx context.Context, from *shelf) (source, error) {
	changing := func(o order, etag string, status int) request {
		return request{status: status, raw: b.raw(
			http.MethodPut, "/v1/orders/"+o.id+"/shipping-address", o.actor, address, "If-Match: "+etag)}
	}
	c, err := dial(ctx, b.api.host)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	other := newShelf(1)
	if err := c.do(b.placing(1, other)(0)); err != nil {
		return nil, err
	}
	var second string
	change := changing(other.pick(0), other.pick(0).etag, http.StatusOK)
	change.answer = func(a answer) { second = a.header.Get("ETag") }
	if err := c.do(change); err != nil {
		return nil, err
	}
	return func(client int) request { return changing(from.pick(client), second, http.StatusConflict) }, nil
}

// duplicates is how many requests with one key are sent at once.
const duplicates = 20

// sendDuplicates sends groups of requests that share a key, all at once, each on its own connection. It measures how long
// a group takes until every request has its answer.
func (b *bench) sendDuplicates(ctx context.Context, length time.Duration) (groups sent, err error) {
	clients := make([]*client, duplicates)
	for i := range clients {
		if clients[i], err = dial(ctx, b.api.host); err != nil {
			return sent{}, err
		}
		defer clients[i].conn.Close()
	}
	began := time.Now()
	for time.Since(began) < length && ctx.Err() == nil {
		from := time.Now()
		if err := b.sendGroup(clients); err != nil {
			return sent{}, err
		}
		groups.times = append(groups.times, time.Since(from))
	}
	groups.took = time.Since(began)
	slices.Sort(groups.times)
	return groups, ctx.Err()
}

func (b *bench) sendGroup(clients []*client) error {
	raw := b.raw(http.MethodPost, "/v1/orders", 0, orderBody(b.skus, 1), "Idempotency-Key: "+uuid.NewString())
	ids, replays, errs := make([]string, len(clients)), make([]bool, len(clients)), make([]error, len(clients))
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			errs[i] = c.do(request{raw: raw, status: http.StatusCreated, answer: func(a answer) {
				ids[i], replays[i] = idOf(a.body), a.header.Get("Idempotent-Replayed") == "true"
			}})
		})
	}
	running.Wait()
	for i := range clients {
		if errs[i] != nil {
			return errs[i]
		}
	}
	first := 0
	for i, replayed := range replays {
		if !replayed {
			first++
		}
		if ids[i] != ids[0] {
			return fmt.Errorf("one key placed the orders %s and %s", ids[0], ids[i])
		}
	}
	if first != 1 {
		return fmt.Errorf("%d of %d duplicates were no replays", first, len(clients))
	}
	return nil
}
