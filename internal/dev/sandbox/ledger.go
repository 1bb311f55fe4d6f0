package sandbox

import (
	"cmp"
	"strings"
)

// Ledger is the money that really moved or tried to: what a test or a reader compares with the service's own books.
type Ledger struct {
	Charges []LedgerCharge `json:"charges"`
	Refunds []LedgerRefund `json:"refunds"`
}

// LedgerCharge is an intent on whose card an attempt was made. ID is that of the PaymentIntent, TenantID and OrderID
// come from its metadata, Status is pending (processing), succeeded or failed.
type LedgerCharge struct {
	ID       string `json:"id"`
	TenantID string `json:"tenant_id,omitempty"`
	OrderID  string `json:"order_id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
}

// LedgerRefund is one refund. TenantID, OrderID and RefundID come from its metadata, TenantID and OrderID else from that
// of its charge; Status is pending, succeeded or failed.
type LedgerRefund struct {
	ID       string `json:"id"`
	TenantID string `json:"tenant_id,omitempty"`
	OrderID  string `json:"order_id"`
	RefundID string `json:"refund_id"`
	Amount   int64  `json:"amount"`
	Status   string `json:"status"`
}

// ledgerCharges lists the intents on whose card an attempt was made; the others moved nothing.
func (st *state) ledgerCharges() []LedgerCharge {
	out := make([]LedgerCharge, 0, st.charged)
	for _, pi := range st.intents.items {
		if pi.LatestCharge == nil {
			continue
		}
		out = append(out, LedgerCharge{
			ID: pi.ID, TenantID: pi.Metadata["tenant_id"], OrderID: pi.Metadata["order_id"], Amount: pi.Amount,
			Currency: strings.ToUpper(pi.Currency), Status: pi.chargeStatus(),
		})
	}
	return out
}

func (st *state) ledgerRefunds() []LedgerRefund {
	out := make([]LedgerRefund, 0, len(st.refunds.items))
	for _, r := range st.refunds.items {
		of := st.intents.get(r.PaymentIntent).Metadata
		meta := func(name string) string { return cmp.Or(r.Metadata[name], of[name]) }
		out = append(out, LedgerRefund{
			ID: r.ID, TenantID: meta("tenant_id"), OrderID: meta("order_id"), RefundID: r.Metadata["refund_id"],
			Amount: r.Amount, Status: r.Status,
		})
	}
	return out
}
