package domain

// Action is something that can be asked of an order, and what refuses it in a state that does not have it.
type Action struct {
	Operation string
	refusal   Code
	sentence  string // what the order cannot do, after "The order is <state> and"
}

// The actions on an order.
var (
	ActionChangeAddress = Action{"change-shipping-address", CodeAddressNotChangeable, "its address can no longer change."}
	ActionShip          = Action{"ship-order", CodeOrderNotShippable, "cannot be shipped."}
	ActionCancel        = Action{"cancel-order", CodeOrderNotCancellable, "cannot be cancelled."}
)

// orderTransitions is the state machine of an order: the state after each action, by the state before. What is not
// listed does not exist. docs/state-machines.md shows the same table, and a test compares the two.
func orderTransitions() map[OrderStatus]map[Action]OrderStatus {
	return map[OrderStatus]map[Action]OrderStatus{
		OrderOpen: {
			ActionChangeAddress: OrderOpen,
			ActionShip:          OrderShipped,
			ActionCancel:        OrderCancelled,
		},
		OrderShipped:   {},
		OrderCancelled: {},
	}
}

// allows is nil where the state machine has the action, or else the action's own refusal.
func (s OrderStatus) allows(a Action) error {
	if _, ok := orderTransitions()[s][a]; ok {
		return nil
	}
	return Refuse(a.refusal, "The order is "+string(s)+" and "+a.sentence)
}

// paymentTransitions is the state machine of a payment: which states may follow each. The provider decides a pending
// one. One that was given up as failed or canceled becomes succeeded where the provider turns out to hold the money.
func paymentTransitions() map[PaymentStatus][]PaymentStatus {
	return map[PaymentStatus][]PaymentStatus{
		PaymentPending:   {PaymentSucceeded, PaymentFailed, PaymentCanceled},
		PaymentSucceeded: {},
		PaymentFailed:    {PaymentSucceeded},
		PaymentCanceled:  {PaymentSucceeded},
	}
}

// refundTransitions is the state machine of a refund. A succeeded one fails when the customer's bank returns the money;
// a failed one has succeeded where the provider turns out to have made it, as long as the balance covers it.
func refundTransitions() map[RefundStatus][]RefundStatus {
	return map[RefundStatus][]RefundStatus{
		RefundPending:   {RefundSucceeded, RefundFailed},
		RefundSucceeded: {RefundFailed},
		RefundFailed:    {RefundSucceeded},
	}
}
