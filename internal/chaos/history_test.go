package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// forever is the return of an operation of which no client knows when it took effect, or whether.
const forever = math.MaxInt64

// modelTime bounds the check of one order or sku. A history that is not decided by then is reported as such.
const modelTime = 30 * time.Second

// operation is one operation of a client, with all its retries, or one that the service does by itself (decline).
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
	Unknown  bool             `json:"unknown,omitempty"` // an attempt may have taken effect, and no answer tells

	request   request
	first     answer // the first accepted answer, which every other one must equal
	originals int    // accepted answers that are no replays
	replays   int
}

func (o *operation) accepted() bool { return o.Status >= 200 && o.Status < 300 }

// orderState is what an order's history is checked against. ETag is empty where a change has made a tag that no client has
// seen yet: the next answer that shows a tag says which.
type orderState struct {
	Placed                bool
	ETag, Status, Address string
}

// changes is the status of an order after each change.
var changes = map[string]string{"address": "open", "ship": "shipped", "cancel": "cancelled", "decline": "cancelled"}

// stepOrder gives the states in which an order may be after an operation; none: the operation cannot have gone like this.
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
	default: // the tag was current, and the status does not allow it
		s.ETag = o.IfMatch
		paid := o.Code == "payment_not_settled" || o.Kind == "ship" // which is not part of this state
		return when(current && (s.Status != "open" || paid), s)
	}
}

// stepStock gives the units on hand after an operation.
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
	case o.Kind == "place": // refused for want of a sku: of this one, where it is the only one
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

// checkOrders checks that each order was one register: every answer is that of some order of the operations in which each
// takes effect at one moment between its call and its return.
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

// checkStock checks the same of the units on hand of each sku.
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

// checkEach checks the history of each object that an operation is about.
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
