package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// move is a change of an order that conflicts with others.
type move struct {
	name string
	// send asks for it under a version. It may be called by any goroutine.
	send func(s shop, order, tag string) testkit.Answer
	// stored reports whether an order, as it is read, shows it.
	stored func(order testkit.Answer) bool
	// ended is the refusal where the order has been shipped or cancelled.
	ended string
	// ends reports whether the order is shipped or cancelled by it.
	ends bool
}

func redirect(line string) move {
	return move{
		name: "address change to " + line, ended: "address_not_changeable",
		send: func(s shop, order, tag string) testkit.Answer {
			return put(s.alice, "/v1/orders/"+order+"/shipping-address", addressAt(line), "If-Match", tag)
		},
		stored: func(o testkit.Answer) bool { return o.Text("shipping_address.line1") == line },
	}
}

func shipment(number string) move {
	return move{
		name: "shipment " + number, ended: "order_not_shippable", ends: true,
		send: func(s shop, order, tag string) testkit.Answer {
			return send(s.alice, http.MethodPost, "/v1/orders/"+order+"/shipment", parcel(number), "If-Match", tag)
		},
		stored: func(o testkit.Answer) bool {
			return o.Text("status") == "shipped" && o.Text("shipment.tracking_number") == number
		},
	}
}

func cancellation(reason string) move {
	return move{
		name: "cancellation, " + reason, ended: "order_not_cancellable", ends: true,
		send: func(s shop, order, tag string) testkit.Answer {
			return post(s.alice, "/v1/orders/"+order+"/cancellation", uuid.NewString(), `{"reason":"`+reason+`"}`, "If-Match", tag)
		},
		stored: func(o testkit.Answer) bool {
			return o.Text("status") == "cancelled" && o.Text("cancellation.reason") == reason
		},
	}
}

func addressAt(line string) string {
	return strings.Replace(testkit.Address, "1 High Street", line, 1)
}

func parcel(number string) string { return `{"carrier":"DHL","tracking_number":"` + number + `"}` }

// send may be called by any goroutine: a lost answer has status 0 and the error as its body.
func send(c *testkit.Caller, method, path, body string, headers ...string) testkit.Answer {
	a, err := c.Try(method, path, body, headers...)
	if err != nil {
		return testkit.Answer{Body: []byte(err.Error())}
	}
	return a
}

func put(c *testkit.Caller, path, body string, headers ...string) testkit.Answer {
	return send(c, http.MethodPut, path, body, headers...)
}

// pauseKey is the advisory lock that changes of orders and products stop at in a shop with pause points.
const pauseKey = 4711

// openPausing opens a shop whose changes of orders and products pause between their comparison and their save while
// the test holds pauseKey. The triggers are the test's own: the schema has none.
func openPausing(t *testing.T) shop {
	t.Helper()
	s := openShop(t)
	s.exec(fmt.Sprintf(`CREATE FUNCTION test_pause() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_advisory_xact_lock(%d); RETURN NEW; END'`, pauseKey))
	for _, table := range []string{"orders", "products"} {
		s.exec(`CREATE TRIGGER test_pause BEFORE UPDATE ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION test_pause()`)
	}
	return s
}

func (s shop) pausing() *testkit.Held {
	s.t.Helper()
	return s.Begin(s.t).Exec(`SELECT pg_advisory_xact_lock($1)`, pauseKey)
}

// inOrder sends two requests so that the second one is at work before the first has ended, lets held go, and returns
// both answers. What is held decides where the first one stops.
func (s shop) inOrder(held *testkit.Held, first, second func() testkit.Answer) (a, b testkit.Answer) {
	s.t.Helper()
	startFirst, firstAnswer := later(first)
	startSecond, secondAnswer := later(second)
	startFirst()
	s.AwaitBlocked(s.t, 1)
	startSecond()
	s.AwaitBlocked(s.t, 2)
	held.Rollback()
	return firstAnswer(), secondAnswer()
}

// requireOneWins lets two moves meet on one version of an order in every forced schedule: either may come first, and
// stop before it has locked the order, or between its comparison and its save. The first one wins, and what is
// stored is the winner's.
func requireOneWins(t *testing.T, one, other move) {
	t.Helper()
	s := openPausing(t)
	s.StartWorker(t)
	for _, pair := range [][2]move{{one, other}, {other, one}} {
		for _, middle := range []bool{false, true} {
			s.requireFirstWins(pair[0], pair[1], middle)
		}
	}
}

func (s shop) requireFirstWins(first, second move, middle bool) {
	s.t.Helper()
	name := fmt.Sprintf("%s, then %s, in the middle: %t", first.name, second.name, middle)
	order := s.placePaid("pm_card_visa")
	tag := s.order(order).Header.Get("ETag")
	held := func() *testkit.Held { return s.hold("orders", order) }
	if middle {
		held = s.pausing
	}
	won, lost := s.inOrder(held(),
		func() testkit.Answer { return first.send(s, order, tag) },
		func() testkit.Answer { return second.send(s, order, tag) })
	require.Equal(s.t, http.StatusOK, won.Status, "%s: %s", name, won.Body)
	requireRefused(s.t, lost, http.StatusConflict, "version_conflict")
	s.requireStoredByWinner(name, order, won, first, second)
	s.requireLoserDecidesAnew(name, order, first, second)
	s.giveBack(order)
}

// requireStoredByWinner checks that the order is what the winner made of it, in one step.
func (s shop) requireStoredByWinner(name, order string, won testkit.Answer, first, second move) {
	s.t.Helper()
	stored := s.order(order)
	require.True(s.t, first.stored(stored), "%s: the winner's change is not there: %s", name, stored.Body)
	require.False(s.t, second.stored(stored), "%s: the loser's change is there: %s", name, stored.Body)
	require.Equal(s.t, won.Header.Get("ETag"), stored.Header.Get("ETag"), name)
	require.EqualValues(s.t, 2, s.version("orders", "id", order), "%s: not one change", name)
}

// requireLoserDecidesAnew checks what the loser meets when it reads again and sends its change with the new tag.
func (s shop) requireLoserDecidesAnew(name, order string, first, second move) {
	s.t.Helper()
	again := second.send(s, order, s.order(order).Header.Get("ETag"))
	if first.ends {
		requireRefused(s.t, again, http.StatusConflict, second.ended)
		require.True(s.t, first.stored(s.order(order)), name)
		return
	}
	require.Equal(s.t, http.StatusOK, again.Status, "%s: %s", name, again.Body)
	require.True(s.t, second.stored(s.order(order)), name)
}

// giveBack takes the units of a shipped or open order off the shop's books, so that a shelf never runs empty.
func (s shop) giveBack(order string) {
	s.t.Helper()
	if s.order(order).Text("status") == "cancelled" {
		return
	}
	s.exec(`UPDATE stock SET on_hand = on_hand + 2, version = version + 1 WHERE sku = $1`, shopSKU)
	s.Stocked(s.t, "default", shopSKU, 2)
}

// version reads the stored version of an aggregate.
func (s shop) version(table, column, id string) int64 {
	s.t.Helper()
	return queryValue[int64](s, `SELECT version FROM `+table+` WHERE tenant_id = 'default' AND `+column+`::text = $1`, id)
}

// requireOneOf sends n requests for one version at once, from behind a start gate: one is accepted, all others are
// refused as stale.
func requireOneOf(t *testing.T, n int, request func(i int) testkit.Answer) (winner testkit.Answer) {
	t.Helper()
	winners := 0
	for _, a := range testkit.Receive(testkit.Together(n, request), n) {
		if a.Status == http.StatusOK {
			winner = a
			winners++
			continue
		}
		requireRefused(t, a, http.StatusConflict, "version_conflict")
	}
	require.Equal(t, 1, winners, "requests that were accepted with one version")
	return winner
}
