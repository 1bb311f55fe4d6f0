package domain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/orders/internal/domain"
)

// shelved is the units that the property test starts with.
const shelved = 15

// shop drives the aggregates as the use cases do, and keeps a plain model beside them.
type shop struct {
	stock *domain.Stock
	sales []*sale
	clock int
}

// sale is one order with its payment, and what the model expects of them.
type sale struct {
	order   *domain.Order
	payment *domain.Payment
	model   struct {
		order    domain.OrderStatus
		payment  domain.PaymentStatus
		intent   bool // the provider has made an intent
		charged  int64
		refunded int64 // pending and succeeded
		pending  map[uuid.UUID]int64
		returned map[uuid.UUID]int64 // succeeded refunds
	}
}

// Ensure, whatever is asked in whatever order: only listed transitions happen, refunds never exceed what was charged,
// and units on hand and units sold are always what was put on the shelf.
func TestRandomCommandsKeepTheBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &shop{stock: domain.RestoreStock(domain.StockState{SKU: "TEA-001", OnHand: shelved})}
		t.Repeat(map[string]func(*rapid.T){
			"place":              s.place,
			"change address":     s.changeAddress,
			"ship":               s.ship,
			"cancel":             s.cancel,
			"ask for the charge": s.ask,
			"charge succeeds":    func(t *rapid.T) { s.chargeSucceeds(t) },
			"charge is declined": s.chargeDeclined,
			"refund":             s.refund,
			"refund settles":     s.settleRefund,
			"":                   s.check,
		})
	})
}

func (s *shop) now() time.Time { s.clock++; return later(s.clock) }

func (s *shop) any(t *rapid.T) *sale {
	if len(s.sales) == 0 {
		t.Skip("no order yet")
	}
	return rapid.SampledFrom(s.sales).Draw(t, "sale")
}

func (s *shop) place(t *rapid.T) {
	units := rapid.Int64Range(1, 12).Draw(t, "units")
	enough := s.stock.State().OnHand >= units
	err := s.stock.Reserve(units, s.now())
	if !enough {
		require.Equal(t, domain.CodeInsufficientStock, codeOf(err))
		return
	}
	require.NoError(t, err)
	order, err := place(domain.Item{SKU: "TEA-001", Quantity: units})
	require.NoError(t, err)
	k := &sale{order: order, payment: domain.NewPayment(order.State(), "pm_card_visa")}
	k.model.order, k.model.payment = domain.OrderOpen, domain.PaymentPending
	k.model.pending, k.model.returned = map[uuid.UUID]int64{}, map[uuid.UUID]int64{}
	s.sales = append(s.sales, k)
}

func (s *shop) changeAddress(t *rapid.T) {
	k := s.any(t)
	expect(t, k.model.order == domain.OrderOpen, k.order.ChangeAddress(validAddress(), s.now()))
}

func (s *shop) ship(t *rapid.T) {
	k := s.any(t)
	may := k.model.order == domain.OrderOpen && k.model.payment == domain.PaymentSucceeded &&
		k.model.refunded < k.model.charged
	expect(t, may, k.order.Ship(domain.Shipment{Carrier: "DHL", ShippedAt: s.now()}, k.payment.State()))
	if may {
		k.model.order = domain.OrderShipped
	}
}

// cancel does what the use case does: the stock returns, and so does the money, now or when it is known.
func (s *shop) cancel(t *rapid.T) {
	k := s.any(t)
	may := k.model.order == domain.OrderOpen
	expect(t, may, k.order.Cancel(domain.Cancellation{CancelledAt: s.now()}))
	if !may {
		return
	}
	k.model.order = domain.OrderCancelled
	s.returnStock(t, k)
	switch {
	case k.model.payment == domain.PaymentSucceeded:
		s.refundRest(t, k)
	case k.model.payment == domain.PaymentPending && !k.model.intent:
		require.NoError(t, k.payment.Cancel(s.now()))
		k.model.payment = domain.PaymentCanceled
	}
}

func (s *shop) returnStock(t *rapid.T, k *sale) {
	for _, sold := range k.order.State().Sold() {
		require.NoError(t, s.stock.Return(sold.Quantity, s.now()))
	}
}

func (s *shop) refundRest(t *rapid.T, k *sale) {
	rest := k.model.charged - k.model.refunded
	require.Equal(t, eur(rest), k.payment.State().Balance())
	if rest > 0 {
		s.request(t, k, rest)
	}
}

// request asks for a refund and, as the model sees it, gets it exactly if it fits.
func (s *shop) request(t *rapid.T, k *sale, amount int64) {
	id := uuid.New()
	may := k.model.payment == domain.PaymentSucceeded && amount > 0 && k.model.refunded+amount <= k.model.charged
	expect(t, may, k.payment.RequestRefund(domain.Refund{ID: id, Amount: eur(amount), CreatedAt: s.now()}))
	if may {
		k.model.refunded += amount
		k.model.pending[id] = amount
	}
}

func (s *shop) ask(t *rapid.T) {
	k := s.any(t)
	may := k.model.payment == domain.PaymentPending && !k.model.intent
	expect(t, may, k.payment.NoteIntent("pi_1", s.now()))
	k.model.intent = k.model.intent || may
}

// answer is the provider's decision on a charge. A success counts even for a payment that was given up.
func (s *shop) answer(t *rapid.T, to domain.PaymentStatus, tell func(*sale) error) *sale {
	k := s.any(t)
	may := k.model.payment == domain.PaymentPending ||
		to == domain.PaymentSucceeded && k.model.payment != domain.PaymentSucceeded
	expect(t, may, tell(k))
	if !may {
		return nil
	}
	k.model.payment = to
	return k
}

func (s *shop) chargeSucceeds(t *rapid.T) {
	k := s.answer(t, domain.PaymentSucceeded, func(k *sale) error { return k.payment.Succeed("pi_1", s.now()) })
	if k == nil {
		return
	}
	k.model.charged = k.order.State().Total.Amount
	if k.model.order == domain.OrderCancelled {
		s.refundRest(t, k)
	}
}

func (s *shop) chargeDeclined(t *rapid.T) {
	k := s.answer(t, domain.PaymentFailed, func(k *sale) error { return k.payment.Fail(s.now()) })
	if k == nil || k.model.order == domain.OrderCancelled {
		return
	}
	require.NoError(t, k.order.Cancel(domain.Cancellation{Reason: domain.ReasonPaymentFailed, CancelledAt: s.now()}))
	k.model.order = domain.OrderCancelled
	s.returnStock(t, k)
}

func (s *shop) refund(t *rapid.T) {
	s.request(t, s.any(t), rapid.Int64Range(-1, 12*1999).Draw(t, "amount"))
}

func (s *shop) settleRefund(t *rapid.T) {
	k := s.any(t)
	refunds := k.payment.State().Refunds
	if len(refunds) == 0 {
		t.Skip("no refund")
	}
	r := rapid.SampledFrom(refunds).Draw(t, "refund")
	outcome := rapid.SampledFrom([]domain.RefundStatus{domain.RefundSucceeded, domain.RefundFailed}).Draw(t, "outcome")
	amount, pending := k.model.pending[r.ID]
	succeeded, had := k.model.returned[r.ID]
	rest := k.model.charged - k.model.refunded
	failed := !pending && !had && r.Amount.Amount <= rest
	may := pending || had && outcome == domain.RefundFailed || failed && outcome == domain.RefundSucceeded
	expect(t, may, k.payment.SettleRefund(r.ID, outcome, "re_1", s.now()))
	if !may {
		return
	}
	delete(k.model.pending, r.ID)
	delete(k.model.returned, r.ID)
	k.model.refunded -= amount + succeeded
	if outcome == domain.RefundSucceeded {
		k.model.refunded += r.Amount.Amount
		k.model.returned[r.ID] = r.Amount.Amount
	}
}

// expect asks for success exactly where the model allows it.
func expect(t *rapid.T, may bool, err error) {
	if may {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
}

// check compares the aggregates with the model and with each other.
func (s *shop) check(t *rapid.T) {
	onShelfOrSold := s.stock.State().OnHand
	for i, k := range s.sales {
		name := fmt.Sprintf("sale %d", i)
		o, p := k.order.State(), k.payment.State()
		require.Equal(t, k.model.order, o.Status, name)
		require.Equal(t, k.model.payment, p.Status, name)
		require.Equal(t, o.Status == domain.OrderShipped, o.Shipment != nil, name)
		require.Equal(t, o.Status == domain.OrderCancelled, o.Cancellation != nil, name)
		require.Equal(t, k.model.refunded, p.Refunded().Amount, name)
		require.LessOrEqual(t, p.Refunded().Amount, k.model.charged, name)
		require.False(t, o.Status == domain.OrderShipped && p.Status != domain.PaymentSucceeded, name)
		require.False(t, p.Status == domain.PaymentFailed && o.Status != domain.OrderCancelled, name)
		if o.Status != domain.OrderCancelled {
			onShelfOrSold += o.Lines[0].Quantity
		}
	}
	require.EqualValues(t, shelved, onShelfOrSold)
}
