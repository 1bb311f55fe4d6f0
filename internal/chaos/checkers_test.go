package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// history makes operations one after another, each of 10 ns, unless their Call is set already. A Return of forever stays.
func history(operations ...*operation) []*operation {
	for i, o := range operations {
		if o.Call == 0 {
			o.Call = int64(i+1) * 100
		}
		if o.Return == 0 {
			o.Return = o.Call + 10
		}
	}
	return operations
}

func order(kind string, status int, o operation) *operation {
	o.Kind, o.Status, o.Order = kind, status, "an order"
	return &o
}

func stored(state, etag, address string) *operation {
	return order("read", 200, operation{State: state, ETag: etag, Address: address})
}

// Ensure the check of orders refuses the histories of a service that loses a change, makes one twice, forgets one, or lets
// a stale one through, and accepts those that stay undecided.
func TestOrderHistories(t *testing.T) {
	t.Parallel()
	placed := func() *operation { return order("place", 201, operation{ETag: "1", Address: "a"}) }
	address := func(ifMatch, etag, to string) *operation {
		return order("address", 200, operation{IfMatch: ifMatch, ETag: etag, Address: to})
	}
	unknown := func() *operation {
		return order("address", 503, operation{IfMatch: "1", Address: "b", Unknown: true, Return: forever})
	}
	refused := func(kind, ifMatch, code string) *operation {
		return order(kind, 409, operation{IfMatch: ifMatch, Code: code})
	}
	for name, c := range map[string]struct {
		history []*operation
		legal   bool
	}{
		"changed and read":              {history(placed(), address("1", "2", "b"), stored("open", "2", "b")), true},
		"a stale change went through":   {history(placed(), address("1", "2", "b"), address("1", "3", "c")), false},
		"a change was lost":             {history(placed(), address("1", "2", "b"), stored("open", "1", "a")), false},
		"another address is stored":     {history(placed(), stored("open", "1", "b")), false},
		"a read before the order":       {history(stored("open", "1", "a"), placed()), false},
		"an unknown change happened":    {history(placed(), unknown(), stored("open", "2", "b")), true},
		"an unknown change did not":     {history(placed(), unknown(), stored("open", "1", "a")), true},
		"an unknown change came late":   {history(placed(), unknown(), stored("open", "1", "a"), stored("open", "2", "b")), true},
		"an unknown change went back":   {history(placed(), unknown(), stored("open", "2", "b"), stored("open", "1", "a")), false},
		"cancelled and then shipped":    {history(placed(), order("cancel", 200, operation{IfMatch: "1", ETag: "2"}), order("ship", 200, operation{IfMatch: "2", ETag: "3"})), false},
		"a conflict without a change":   {history(placed(), refused("ship", "1", "version_conflict")), false},
		"a refusal of an open order":    {history(placed(), refused("address", "1", "address_not_changeable")), false},
		"a declined charge":             {history(placed(), order("decline", 200, operation{Call: 105, Return: 900}), stored("cancelled", "2", "a")), true},
		"cancelled by no operation":     {history(placed(), stored("cancelled", "2", "a")), false},
		"an unpaid order does not ship": {history(placed(), refused("ship", "1", "payment_not_settled")), true},
	} {
		broken, undecided := checkOrders(c.history)
		require.Equal(t, c.legal, len(broken) == 0, name)
		require.Empty(t, undecided, name)
	}
}

// Ensure the check of stock refuses units that are lost, returned twice or sold twice.
func TestStockHistories(t *testing.T) {
	t.Parallel()
	const sku = "RARE-001"
	start := skus[sku]
	sold := map[string]int64{sku: 3}
	of := func(kind string) *operation {
		return &operation{Kind: kind, Status: 200, Sold: sold, Order: "an order"}
	}
	counted := func(units int64) *operation { return &operation{Kind: "stock", Status: 200, SKU: sku, OnHand: units} }
	adjusted := func(delta, units int64) *operation {
		return &operation{Kind: "adjust", Status: 200, SKU: sku, Delta: delta, OnHand: units}
	}
	for name, c := range map[string]struct {
		history []*operation
		legal   bool
	}{
		"sold":           {history(of("place"), counted(start-3)), true},
		"returned":       {history(of("place"), of("cancel"), counted(start)), true},
		"returned twice": {history(of("place"), of("cancel"), counted(start+3)), false},
		"sold twice":     {history(of("place"), counted(start-6)), false},
		"lost":           {history(adjusted(2, start+2), adjusted(2, start+2)), false},
		"added up":       {history(adjusted(2, start+2), adjusted(2, start+4)), true},
		"refused although there is enough": {history(
			&operation{Kind: "place", Status: 409, Code: "insufficient_stock", Sold: sold}), false},
	} {
		broken, undecided := checkStock(c.history)
		require.Equal(t, c.legal, len(broken) == 0, name)
		require.Empty(t, undecided, name)
	}
}
