package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// forever is the return time of an operation if no client knows when, or whether, it took effect.
const forever = math.MaxInt64

// modelTime bounds the check of one order or sku. After that, its history is reported as undecided.
const modelTime = 30 * time.Second

// operation is one operation of a client with all its retries, or a decline, which the service performs by itself.
type operation struct {
	Client   int              `json:"client"`
	Kind     string           `json:"kind"`
	Order    string           `json:"order,omitempty"`
	SKU      string           `json:"sku,omitempty"`
	Sold     map[string]int64 `json:"sold,omitempty"` // units by sku of an order that was placed or cancelled
	Delta    int64            `json:"delta,omitempty"`
	Key      string           `json:"key,omitempty"`
	IfMatch  string           `json:"if_match,omitempty"`
	Address  string           `json:"address,omitempty"` // its first line
	Call     int64            `json:"call"`              // nanoseconds since the start
	Return   int64            `json:"return"`
	Status   int              `json:"status"`
	Code     string           `json:"code,omitempty"`
	State    string           `json:"state,omitempty"` // of an order that was read
	ETag     string           `json:"etag,omitempty"`
	OnHand   int64            `json:"on_hand,omitempty"`
	Attempts int              `json:"attempts"`
	Unknown  bool             `json:"unknown,omitempty"` // an attempt may have taken effect, and no response says whether

	request   request
	first     answer // the first accepted response; all others must equal it
	originals int    // accepted responses that were not replayed
	replays   int
}

func (o *operation) accepted() bool { return o.Status >= 200 && o.Status < 300 }

// orderState is the model's state of one order. ETag is empty after a change whose new ETag no client has seen yet; the
// next response with an ETag sets it.
type orderState struct {
	Placed                bool
	ETag, Status, Address string
}

// changes is the status of an order after each change.
var changes = map[string]string{"address": "open", "ship": "shipped", "cancel": "cancelled", "decline": "cancelled"}

// stepOrder returns the possible states of an order after an operation. It returns none if the operation is impossible
// in state s.
func stepOrder(s orderState, o *operation) []orderState {
	switch {
	case o.Kind == "place":
		return when(!s.Placed, orderState{true, o.ETag, "open", o.Address})
	case !s.Placed:
		return nil
	case o.Kind == "read":
		seen := orderState{true, o.ETag, o.State, o.Address}
		return when((s.ETag == "" || s.ETag == o.ETag) && s.Status == o.State && s.Address == o.Address, seen)
	}
	next := orderState{true, o.ETag, changes[o.Kind], cmp.Or(o.Address, s.Address)}
	current := o.Kind == "decline" || s.ETag == "" || s.ETag == o.IfMatch
	applies := current && s.Status == "open"
	switch {
	case o.accepted():
		return when(applies, next)
	case o.Unknown && applies:
		return []orderState{s, next}
	case o.Unknown:
		return []orderState{s}
	case o.Code == "version_conflict":
		return when(s.ETag != o.IfMatch, s)
	default: // the ETag was current, and the order's status refuses the operation
		s.ETag = o.IfMatch
		paid := o.Code == "payment_not_settled" || o.Kind == "ship" // the payment is not part of this state
		return when(current && (s.Status != "open" || paid), s)
	}
}

// stepStock returns the units on hand after an operation, or none if the operation is impossible.
func stepStock(sku string, units int64, o *operation) []int64 {
	sold := o.Sold[sku]
	switch {
	case o.Kind == "stock":
		return when(o.OnHand == units, units)
	case o.Kind == "adjust" && o.accepted():
		return when(units+o.Delta == o.OnHand, o.OnHand)
	case o.Kind == "adjust":
		return when(units+o.Delta < 0, units)
	case o.Kind == "place" && o.accepted():
		return when(units >= sold, units-sold)
	case o.Kind == "place": // insufficient stock of one of its skus; of this one, if it has only one
		return when(len(o.Sold) > 1 || units < sold, units)
	default: // cancel, decline
		return when(true, units+sold)
	}
}

func when[S any](possible bool, next S) []S {
	if !possible {
		return nil
	}
	return []S{next}
}

// checkOrders checks that the history of each order is linearizable: there is a sequence of its operations that explains
// every response, in which each operation takes effect at one moment between its call and its return.
func checkOrders(history []*operation) (broken, undecided []string) {
	return checkEach(history, func(o *operation) []string {
		kinds := []string{"place", "read", "address", "ship", "cancel", "decline"}
		told := o.Unknown || o.accepted() || o.Status == 409
		if o.Order == "" || !told || !slices.Contains(kinds, o.Kind) || o.Kind == "cancel" && !o.accepted() && o.Unknown {
			return nil
		}
		return []string{o.Order}
	}, func(string) porcupine.Model { return model(orderState{}, stepOrder) })
}

// checkStock checks that the history of each sku's units on hand is linearizable.
func checkStock(history []*operation) (broken, undecided []string) {
	return checkEach(history, func(o *operation) (of []string) {
		moved := (o.Kind == "place" || o.Kind == "cancel" || o.Kind == "decline") && o.accepted()
		refused := (o.Kind == "place" || o.Kind == "adjust") && o.Code == "insufficient_stock" && !o.Unknown
		if o.SKU != "" && (o.accepted() || refused) {
			of = append(of, o.SKU)
		}
		for sku := range o.Sold {
			if moved || refused {
				of = append(of, sku)
			}
		}
		return of
	}, func(sku string) porcupine.Model {
		return model(skus[sku], func(units int64, o *operation) []int64 { return stepStock(sku, units, o) })
	})
}

func model[S any](start S, step func(S, *operation) []S) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{start} },
		Step: func(state, input, _ any) (next []any) {
			for _, s := range step(state.(S), input.(*operation)) {
				next = append(next, s)
			}
			return next
		},
	}).ToModel()
}

// checkEach checks the history of each object; of returns the objects of an operation.
func checkEach(
	history []*operation, of func(*operation) []string, model func(string) porcupine.Model,
) (broken, undecided []string) {
	each := map[string][]porcupine.Operation{}
	for _, o := range history {
		for _, id := range of(o) {
			each[id] = append(each[id], porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return})
		}
	}
	for id, operations := range each {
		switch porcupine.CheckOperationsTimeout(model(id), operations, modelTime) {
		case porcupine.Illegal:
			broken = append(broken, fmt.Sprintf("the history of %s (%d operations) is not linearizable", id, len(operations)))
		case porcupine.Ok:
		case porcupine.Unknown:
			undecided = append(undecided, id)
		}
	}
	slices.Sort(broken)
	return broken, undecided
}
