package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/orders/internal/dev/testkit"
)

// clientTimeout is how long a client waits for an answer.
const clientTimeout = 3 * time.Second

// placed is an order that some client has placed.
type placed struct {
	id   string
	sold map[string]int64

	mu   sync.Mutex
	etag string // the last one that some client has seen: often stale
}

func (p *placed) seen(etag string) { p.mu.Lock(); p.etag = etag; p.mu.Unlock() }

func (p *placed) tag() string { p.mu.Lock(); defer p.mu.Unlock(); return p.etag }

// client is one caller. Its decisions come from its seed; when others are answered does not.
type client struct {
	*world
	id    int
	dice  *rand.Rand
	http  *http.Client
	token string
	made  int
	over  <-chan struct{} // closed when the run ends: what is open then is resolved after healing
}

type request struct{ method, path, body, key, ifMatch string }

// answer is what came back; err: nothing whole did.
type answer struct {
	testkit.Answer
	err error
}

func (a answer) accepted() bool { return a.err == nil && a.Status >= 200 && a.Status < 300 }

// refused tells whether the answer says for good that this attempt had no effect.
func (a answer) refused() bool {
	return a.err == nil && a.Status >= 400 && a.Status < 500 && a.Status != http.StatusRequestTimeout && !a.inProgress()
}

func (a answer) inProgress() bool { return a.err == nil && a.Code() == "idempotency_key_in_progress" }

// mayHaveHappened tells whether the attempt can have taken effect, or can still. try_again promises that it did not.
func (a answer) mayHaveHappened() bool {
	return a.err != nil || a.Code() == "outcome_unknown" || a.Status == http.StatusInternalServerError
}

// send makes one attempt. Every answer must be one that the contract declares.
func (c *client) send(api string, r request) answer {
	q, err := http.NewRequest(r.method, api+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Idempotency-Key": r.key, "If-Match": r.ifMatch,
	} {
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	if r.body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(q)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{err: err}
	}
	if broken := testkit.CheckContract(q, response.StatusCode, response.Header, raw); broken != nil {
		c.violation("%s %s answered %d against the contract: %v: %s", r.method, r.path, response.StatusCode, broken, raw)
	}
	if response.StatusCode == http.StatusInternalServerError {
		c.violation("%s %s answered 500: whatever fails around the service, it must know what it is: %s", r.method, r.path, raw)
	}
	return answer{testkit.Answer{Status: response.StatusCode, Header: response.Header, Body: raw}, nil}
}

// try makes one attempt; a keyed one, now and then, as two at once through both APIs.
func (c *client) try(r request) []answer {
	api := c.dice.IntN(len(c.apis))
	if r.key == "" || c.dice.IntN(6) > 0 {
		return []answer{c.send(c.apis[api], r)}
	}
	both := make([]answer, 2)
	var wait sync.WaitGroup
	for i := range both {
		wait.Go(func() { both[i] = c.send(c.apis[(api+i)%len(c.apis)], r) })
	}
	wait.Wait()
	return both
}

// carryOut makes attempts until one is answered for good, or the run is over. An operation without a key is tried once:
// its caller reads again instead.
func (c *client) carryOut(o *operation, r request) {
	o.Client, o.request, o.Key, o.IfMatch, o.Call = c.id, r, r.key, r.ifMatch, c.now()
	for done := false; !done; {
		done = c.attempt(o) || r.key == ""
		if !done {
			select {
			case <-c.over:
				done = true
			case <-time.After(time.Duration(50+c.dice.IntN(350)) * time.Millisecond):
			}
		}
	}
	c.conclude(o)
}

// attempt tells whether the operation was answered for good.
func (c *client) attempt(o *operation) bool {
	answers := c.try(o.request)
	o.Attempts += len(answers)
	before, settled := o.accepted(), false
	for _, a := range answers {
		switch {
		case a.accepted():
			c.accept(o, a)
			settled = true
		case a.refused() && !o.accepted():
			o.Status, o.Code, settled = a.Status, a.Code(), true
		case a.refused() && before: // of two at once, one may be refused and the other accepted a moment later
			c.violation("%s with key %s was accepted and then refused: %d %s", o.Kind, o.Key, a.Status, a.Code())
		}
		o.Unknown = o.Unknown || a.mayHaveHappened()
	}
	return settled
}

// accept notes an accepted answer. Of all answers to one key one may be the original, and all must be the same.
func (c *client) accept(o *operation, a answer) {
	original := a.Header.Get("Idempotent-Replayed") == ""
	first := o.first
	o.Status, o.Code, o.ETag = a.Status, "", a.Header.Get("ETag")
	switch {
	case !first.accepted():
		o.first = a
	case o.Key == "":
	case a.Status != first.Status || !bytes.Equal(a.Body, first.Body) || a.Header.Get("ETag") != first.Header.Get("ETag") ||
		a.Header.Get("Location") != first.Header.Get("Location"):
		c.violation("%s with key %s was answered in two ways:\n%s\n%s", o.Kind, o.Key, first.Body, a.Body)
	case original && o.originals > 0:
		c.violation("%s with key %s was carried out twice", o.Kind, o.Key)
	}
	if original {
		o.originals++
	} else {
		o.replays++
	}
}

// conclude puts the operation into the history.
func (c *client) conclude(o *operation) {
	o.Return = c.now()
	if o.accepted() {
		o.Unknown = false
	} else if o.Unknown {
		o.Return = forever
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, o)
}

// resolve asks again for the answer of a keyed operation after healing: what was open is decided by it, and what was
// accepted is replayed.
func (c *client) resolve(o *operation) {
	open := !o.accepted()
	if !until(quietTime, func() bool { return c.attempt(o) }) {
		c.violation("%s with key %s is not answered although all is healed", o.Kind, o.Key)
	}
	if open {
		o.Unknown, o.Return = false, c.now()
		o.learn()
	}
}

// work carries out one operation after another until the run is over.
func (c *client) work() {
	actions := slices.Concat(
		slices.Repeat([]func(){c.place}, 8), slices.Repeat([]func(){c.read}, 4), slices.Repeat([]func(){c.changeAddress}, 5),
		slices.Repeat([]func(){c.ship}, 3), slices.Repeat([]func(){c.cancel}, 3), slices.Repeat([]func(){c.refund}, 3),
		slices.Repeat([]func(){c.adjust}, 2), slices.Repeat([]func(){c.stock}, 3), []func(){c.payment},
	)
	for {
		select {
		case <-c.over:
			return
		case <-time.After(time.Duration(c.dice.IntN(30)) * time.Millisecond):
			actions[c.dice.IntN(len(actions))]()
		}
	}
}

// name is a new one for what this client makes.
func (c *client) name(kind string) string {
	c.made++
	return fmt.Sprintf("%s-%d-%d", kind, c.id, c.made)
}

// order is one that was placed lately by any client, or nil.
func (c *client) order() *placed {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.orders)
	if n == 0 {
		return nil
	}
	return c.orders[n-1-c.dice.IntN(min(n, 8))]
}

// methods are cards that work, mostly.
var methods = []string{
	"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_us", "pm_card_mastercard", "pm_card_chargeDeclined",
	"pm_card_authenticationRequired", "pm_card_refundFail", "pm_card_pendingRefund",
}

func (c *client) place() {
	o := &operation{Kind: "place", Sold: map[string]int64{}, Address: c.name("Street")}
	var lines []string
	names := slices.Sorted(maps.Keys(skus))
	c.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, sku := range names[:1+c.dice.IntN(3)] {
		units := 1 + c.dice.Int64N(3)
		o.Sold[sku] = units
		lines = append(lines, sku, fmt.Sprint(units))
	}
	body := testkit.OrderBody(methods[c.dice.IntN(len(methods))], lines...)
	body = strings.Replace(body, "1 High Street", o.Address, 1)
	c.carryOut(o, request{method: "POST", path: "/v1/orders", body: body, key: c.name("place")})
	if o.learn(); o.accepted() {
		c.mu.Lock()
		c.orders = append(c.orders, &placed{id: o.Order, sold: o.Sold, etag: o.ETag})
		c.mu.Unlock()
	}
}

// learn takes from an accepted answer what the history needs.
func (o *operation) learn() {
	if !o.first.accepted() {
		return
	}
	switch o.Kind {
	case "place":
		o.Order = o.first.Text("id")
	case "read":
		o.State, o.Address = o.first.Text("status"), o.first.Text("shipping_address.line1")
	case "adjust", "stock":
		o.OnHand = o.first.Number("on_hand")
	}
}

func (c *client) read() {
	if p := c.order(); p != nil {
		c.readOrder(p)
	}
}

func (c *client) readOrder(p *placed) *operation {
	o := &operation{Kind: "read", Order: p.id}
	c.ask(o, "/v1/orders/"+p.id)
	if o.accepted() {
		p.seen(o.ETag)
	}
	return o
}

// ask reads. A read without an answer tells nothing.
func (c *client) ask(o *operation, path string) {
	c.carryOut(o, request{method: "GET", path: path})
	o.learn()
	if o.Status == http.StatusNotFound {
		c.violation("%s is not found", path)
	}
	if !o.accepted() {
		o.Kind += " without an answer"
	}
}

// change changes an order under the tag that the client has just read or, half of the time, one that was seen before. A
// caller whose tag is stale, or who does not know what became of its change, reads again.
func (c *client) change(o *operation, method, path, body string) {
	p := c.order()
	if p == nil {
		return
	}
	if c.dice.IntN(2) == 0 && !c.readOrder(p).accepted() {
		return
	}
	o.Order = p.id
	r := request{method: method, path: "/v1/orders/" + p.id + path, body: body, ifMatch: p.tag()}
	if o.Kind == "cancel" {
		o.Sold, r.key = p.sold, c.name("cancel")
	}
	c.carryOut(o, r)
	if o.accepted() {
		p.seen(o.ETag)
	} else if o.Unknown || o.Code == "version_conflict" {
		c.readOrder(p)
	}
}

func (c *client) changeAddress() {
	o := &operation{Kind: "address", Address: c.name("Street")}
	c.change(o, "PUT", "/shipping-address", strings.Replace(testkit.Address, "1 High Street", o.Address, 1))
}

func (c *client) ship() {
	c.change(&operation{Kind: "ship"}, "POST", "/shipment", `{"carrier":"DHL","tracking_number":"`+c.name("T")+`"}`)
}

func (c *client) cancel() {
	c.change(&operation{Kind: "cancel"}, "POST", "/cancellation", `{"reason":"changed my mind"}`)
}

func (c *client) refund() {
	if p := c.order(); p != nil {
		body := fmt.Sprintf(`{"amount":{"amount":%d,"currency":"EUR"},"reason":"a scratch"}`, 1+c.dice.IntN(600))
		c.carryOut(&operation{Kind: "refund", Order: p.id},
			request{method: "POST", path: "/v1/orders/" + p.id + "/refunds", body: body, key: c.name("refund")})
	}
}

func (c *client) sku() string {
	return slices.Sorted(maps.Keys(skus))[c.dice.IntN(len(skus))]
}

func (c *client) adjust() {
	o := &operation{Kind: "adjust", SKU: c.sku(), Delta: c.dice.Int64N(21) - 10}
	if o.Delta >= 0 {
		o.Delta++ // zero is no adjustment
	}
	c.carryOut(o, request{method: "POST", path: "/v1/products/" + o.SKU + "/stock-adjustments",
		body: fmt.Sprintf(`{"delta":%d}`, o.Delta), key: c.name("adjust")})
	o.learn()
}

func (c *client) stock() {
	o := &operation{Kind: "stock", SKU: c.sku()}
	c.ask(o, "/v1/products/"+o.SKU+"/stock")
}

func (c *client) payment() {
	if p := c.order(); p != nil {
		c.ask(&operation{Kind: "payment", Order: p.id}, "/v1/orders/"+p.id+"/payment")
	}
}

// written is the history as lines of JSON.
func written(history []*operation) []byte {
	var out bytes.Buffer
	for _, o := range history {
		line, _ := json.Marshal(o) // texts and numbers
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}
