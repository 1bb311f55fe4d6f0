package domain_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/domain"
)

// catalogue has two products on sale in EUR, one that is not, one in USD, and one that is dear.
func catalogue() map[string]domain.ProductState {
	products := map[string]domain.ProductState{}
	for sku, d := range map[string]domain.ProductDetails{
		"TEA-001":  {Name: "Sencha", Price: eur(1999), Active: true},
		"MUG-001":  {Name: "Mug", Price: eur(1250), Active: true},
		"OLD-001":  {Name: "Pot", Price: eur(500)},
		"US-001":   {Name: "Corn", Price: domain.Money{Amount: 100, Currency: "USD"}, Active: true},
		"DEAR-001": {Name: "Ming vase", Price: eur(math.MaxInt64), Active: true},
	} {
		products[sku] = domain.ProductState{Tenant: "default", SKU: sku, Details: d}
	}
	return products
}

func place(lines ...domain.Item) (*domain.Order, error) {
	return domain.PlaceOrder(domain.NewOrder{
		Tenant: "default", ID: uuid.MustParse("019ae6a0-58c0-7b1e-9d3c-3f3a5b1f6c42"), Customer: "alice", Currency: "EUR",
		Items: lines, Address: validAddress(), At: noon(),
	}, catalogue())
}

// Ensure an order takes names and prices from the catalogue and keeps its lines as they were asked for.
func TestPlaceOrderTakesTheCataloguesPrices(t *testing.T) {
	t.Parallel()
	o, err := place(domain.Item{"TEA-001", 2}, domain.Item{"MUG-001", 1}, domain.Item{"TEA-001", 1})
	require.NoError(t, err)
	s := o.State()
	require.Equal(t, []domain.Line{
		{"TEA-001", "Sencha", 2, eur(1999)}, {"MUG-001", "Mug", 1, eur(1250)}, {"TEA-001", "Sencha", 1, eur(1999)},
	}, s.Lines)
	require.Equal(t, eur(3*1999+1250), s.Total)
	require.Equal(t, domain.OrderOpen, s.Status)
	require.Equal(t, "alice", s.Customer)
	require.Equal(t, noon(), s.CreatedAt)
	require.Equal(t, noon(), s.UpdatedAt)
	require.Zero(t, s.Version, "a version comes from the store")
}

// Ensure what cannot be sold is refused with its code.
func TestPlaceOrderRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []domain.Item
		code  domain.Code
	}{
		{"an unknown product", []domain.Item{{"TEA-001", 1}, {"NONE-001", 1}}, domain.CodeProductUnavailable},
		{"a product off sale", []domain.Item{{"OLD-001", 1}}, domain.CodeProductUnavailable},
		{"another currency", []domain.Item{{"US-001", 1}}, domain.CodeCurrencyMismatch},
		{"a line beyond int64", []domain.Item{{"DEAR-001", 2}}, domain.CodeValidationFailed},
		{"a total beyond int64", []domain.Item{{"DEAR-001", 1}, {"TEA-001", 1}}, domain.CodeValidationFailed},
		{"a negative quantity", []domain.Item{{"TEA-001", -1}}, domain.CodeValidationFailed},
	} {
		o, err := place(c.lines...)
		require.Equal(t, c.code, codeOf(err), c.name)
		require.Nil(t, o, c.name)
	}
	_, err := place(domain.Item{"DEAR-001", 1})
	require.Equal(t, domain.CodeValidationFailed, codeOf(err), "a total beyond what can be charged")
}

// Ensure the lines of a request are bounded, each complaint under the path of its field.
func TestWantedLinesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines []domain.Item
		want  map[string]string
	}{
		{"one", []domain.Item{{"TEA-001", 1}}, map[string]string{}},
		{"the most of one", []domain.Item{{"TEA-001", 10_000}}, map[string]string{}},
		{"the most lines", slices.Repeat([]domain.Item{{"TEA-001", 1}}, 100), map[string]string{}},
		{"none", nil, map[string]string{"lines": "length"}},
		{"too many", slices.Repeat([]domain.Item{{"TEA-001", 1}}, 101), map[string]string{"lines": "length"}},
		{"quantities", []domain.Item{{"TEA-001", 0}, {"TEA-001", -1}, {"TEA-001", 10_001}}, map[string]string{
			"lines/0/quantity": "range", "lines/1/quantity": "range", "lines/2/quantity": "range",
		}},
		{"a sku", []domain.Item{{"TEA-001", 1}, {"tea", 1}}, map[string]string{"lines/1/sku": "pattern"}},
	} {
		require.Equal(t, c.want, invalid(func(v *domain.Violations) { domain.CheckItems(v, c.lines) }), c.name)
	}
}

// Ensure crossed and repeated lines come out summed and in one order, bytewise, so that stock is locked in one order.
func TestQuantitiesAreSummedBySKUInOrder(t *testing.T) {
	t.Parallel()
	lines := []domain.Item{{"B", 1}, {"A-1", 2}, {"A", 3}, {"B", 4}, {"A0", 5}, {"A", 6}}
	want := []domain.Item{{"A", 9}, {"A-1", 2}, {"A0", 5}, {"B", 5}}
	require.Equal(t, want, domain.SumBySKU(lines))
	require.Equal(t, domain.Item{"B", 1}, lines[0], "the caller's lines were changed")
	slices.Reverse(lines)
	require.Equal(t, want, domain.SumBySKU(lines), "crossed")
	require.Empty(t, domain.SumBySKU(nil))

	o, err := place(domain.Item{"TEA-001", 1}, domain.Item{"MUG-001", 2}, domain.Item{"TEA-001", 3})
	require.NoError(t, err)
	require.Equal(t, []domain.Item{{"MUG-001", 2}, {"TEA-001", 4}}, o.State().Sold())
}

// asked is one thing that can be asked of an order, and the code with which it is refused.
type asked struct {
	name string
	do   func(*domain.Order) error
	code domain.Code
}

func everything() []asked {
	return []asked{
		{"change address", func(o *domain.Order) error {
			return o.ChangeAddress(domain.Address{Name: "Elsewhere"}, later(5))
		}, domain.CodeAddressNotChangeable},
		{"ship", func(o *domain.Order) error {
			return o.Ship(domain.Shipment{Carrier: "DHL", TrackingNumber: "1", ShippedAt: later(5)}, paid())
		}, domain.CodeOrderNotShippable},
		{"cancel", func(o *domain.Order) error {
			return o.Cancel(domain.Cancellation{Reason: "changed my mind", CancelledAt: later(5)})
		}, domain.CodeOrderNotCancellable},
	}
}

// Ensure an open order can do everything, one that has ended nothing, and that a refusal changes nothing.
func TestOrderTransitions(t *testing.T) {
	t.Parallel()
	open, err := place(domain.Item{"TEA-001", 1})
	require.NoError(t, err)
	shipped, cancelled := open.State(), open.State()
	shipped.Status, shipped.Shipment = domain.OrderShipped, &domain.Shipment{Carrier: "UPS"}
	cancelled.Status, cancelled.Cancellation = domain.OrderCancelled, &domain.Cancellation{}
	for _, a := range everything() {
		require.NoError(t, a.do(domain.RestoreOrder(open.State())), a.name)
		for _, ended := range []domain.OrderState{shipped, cancelled} {
			o := domain.RestoreOrder(ended)
			require.Equal(t, a.code, codeOf(a.do(o)), "%s of a %s order", a.name, ended.Status)
			require.Equal(t, ended, o.State(), "a refused change changed something")
		}
	}
}

// Ensure each change leaves the state that it promises, and leaves the version to the store.
func TestOrderChanges(t *testing.T) {
	t.Parallel()
	o, err := place(domain.Item{"TEA-001", 1})
	require.NoError(t, err)
	o.Stored(4)
	placed := o.State()

	moved := validAddress()
	moved.Line1 = "Quai de la Batte 12"
	require.NoError(t, o.ChangeAddress(moved, later(1)))
	want := placed
	want.Address, want.UpdatedAt = moved, later(1)
	require.Equal(t, want, o.State())

	shipment := domain.Shipment{Carrier: "DHL", TrackingNumber: "JD01", ShippedAt: later(2)}
	require.NoError(t, o.Ship(shipment, paid()))
	want.Status, want.Shipment, want.UpdatedAt = domain.OrderShipped, &shipment, later(2)
	require.Equal(t, want, o.State())

	o = domain.RestoreOrder(placed)
	cancellation := domain.Cancellation{Reason: "wrong size", CancelledAt: later(3)}
	require.NoError(t, o.Cancel(cancellation))
	want = placed
	want.Status, want.Cancellation, want.UpdatedAt = domain.OrderCancelled, &cancellation, later(3)
	require.Equal(t, want, o.State())
}

// paid is a payment that has succeeded and of which nothing has gone back.
func paid() domain.PaymentState { return paymentOf(domain.PaymentSucceeded, 100).State() }

// Ensure nothing leaves unpaid, or after all of its money has gone back.
func TestOnlyPaidOrdersShip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		payment *domain.Payment
		code    domain.Code
	}{
		{paymentOf(domain.PaymentPending, 100), domain.CodePaymentNotSettled},
		{paymentOf(domain.PaymentFailed, 100), domain.CodePaymentNotSettled},
		{paymentOf(domain.PaymentCanceled, 100), domain.CodePaymentNotSettled},
		{paymentOf(domain.PaymentSucceeded, 100, refund(100, domain.RefundSucceeded)), domain.CodeOrderNotShippable},
		{paymentOf(domain.PaymentSucceeded, 100, refund(60, domain.RefundPending), refund(40, domain.RefundSucceeded)), domain.CodeOrderNotShippable},
		{paymentOf(domain.PaymentSucceeded, 100, refund(99, domain.RefundSucceeded)), ""},
		{paymentOf(domain.PaymentSucceeded, 100, refund(100, domain.RefundFailed)), ""},
	} {
		o, err := place(domain.Item{"TEA-001", 1})
		require.NoError(t, err)
		require.Equal(t, c.code, codeOf(o.Ship(domain.Shipment{ShippedAt: later(1)}, c.payment.State())))
		require.Equal(t, c.code == "", o.State().Status == domain.OrderShipped)
	}
}

// Ensure shipments and reasons are bounded.
func TestShipmentsAndReasonsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 101)
	require.Empty(t, invalid(domain.Shipment{Carrier: "DHL", TrackingNumber: "1", ShippedAt: time.Time{}}.Check))
	require.Empty(t, invalid(domain.Shipment{Carrier: "D", TrackingNumber: long[1:]}.Check))
	require.Equal(t, map[string]string{"tracking_number": "length"}, invalid(domain.Shipment{Carrier: long[1:], TrackingNumber: long}.Check))
	require.Equal(t, map[string]string{"carrier": "required", "tracking_number": "required"}, invalid(domain.Shipment{}.Check))
	require.Equal(t, map[string]string{"carrier": "length", "tracking_number": "pattern"},
		invalid(domain.Shipment{Carrier: long, TrackingNumber: "1\t2"}.Check))
	for reason, want := range map[string]string{
		"": "", "wrong size": "", strings.Repeat("é", 500): "", strings.Repeat("é", 501): "length", "a\x00b": "pattern",
	} {
		require.Equal(t, want, invalid(func(v *domain.Violations) { domain.CheckReason(v, reason) })["reason"], "%.20q", reason)
	}
}
