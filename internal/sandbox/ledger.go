package sandbox

import "strings"

// Ledger is the money that really moved or tried to: what a test or a reader compares with the service's own books.
type Ledger struct {
	Charges []LedgerCharge `json:"charges"`
	Refunds []LedgerRefund `json:"refunds"`
}

// LedgerCharge is one attempt on a card. ID is that of the PaymentIntent, OrderID comes from its metadata, Status is
// succeeded or failed.
type LedgerCharge struct {
	ID       string `json:"id"`
	OrderID  string `json:"order_id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
}

// LedgerRefund is one refund. OrderID and RefundID come from its metadata, OrderID else from that of its charge;
// Status is pending, succeeded or failed.
type LedgerRefund struct {
	ID       string `json:"id"`
	OrderID  string `json:"order_id"`
	RefundID string `json:"refund_id"`
	Amount   int64  `json:"amount"`
	Status   string `json:"status"`
}

// charges lists the intents on whose card an attempt was made; the others moved nothing.
func (st *state) charges() []LedgerCharge {
	out := []LedgerCharge{}
	for _, pi := range st.Intents {
		if pi.LatestCharge == nil {
			continue
		}
		status := statusFailed
		if pi.Status == statusSucceeded {
			status = statusSucceeded
		}
		out = append(out, LedgerCharge{
			ID: pi.ID, OrderID: pi.Metadata["order_id"], Amount: pi.Amount,
			Currency: strings.ToUpper(pi.Currency), Status: status,
		})
	}
	return out
}

func (st *state) refunds() []LedgerRefund {
	out := []LedgerRefund{}
	for _, r := range st.Refunds {
		order := r.Metadata["order_id"]
		if order == "" {
			order = st.intent(r.PaymentIntent).Metadata["order_id"]
		}
		out = append(out, LedgerRefund{
			ID: r.ID, OrderID: order, RefundID: r.Metadata["refund_id"], Amount: r.Amount, Status: r.Status,
		})
	}
	return out
}
