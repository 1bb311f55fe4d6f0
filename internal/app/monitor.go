package app

import "context"

// FindingKind is a kind of payment event that operators count or are alerted to.
type FindingKind string

// The findings. docs/runbooks/payment-findings.md describes what the service does about each, and what an operator must
// do.
const (
	FindingChargeDeclined    FindingKind = "charge_declined"    // the order is cancelled
	FindingChargeRefused     FindingKind = "charge_refused"     // neither a decline nor transient: an operator must look
	FindingLateCharge        FindingKind = "late_charge"        // succeeded after it was given up: adopted, refunded
	FindingSecondCharge      FindingKind = "second_charge"      // another intent of a paid order: refunded
	FindingUnknownCharge     FindingKind = "unknown_charge"     // of an order that is not in the database: refunded
	FindingRefundRefused     FindingKind = "refund_refused"     // not final: an operator must look
	FindingRefundFailed      FindingKind = "refund_failed"      // the balance is restored; the customer has no money yet
	FindingRefundAdopted     FindingKind = "refund_adopted"     // made at the provider, unknown here
	FindingRefundUnexplained FindingKind = "refund_unexplained" // made at the provider, does not fit the payment
	FindingMismatch          FindingKind = "mismatch"           // the provider's answer is about something else
	FindingDispute           FindingKind = "dispute"            // the customer disputes the charge at the bank
	FindingRefundFailedLate  FindingKind = "refund_failed_late" // had succeeded, has failed since: the balance is back
	FindingUnmatchedReturned FindingKind = "unmatched_returned" // a second or unknown charge was refunded
)

// FindingKinds lists every kind.
func FindingKinds() []FindingKind {
	return []FindingKind{
		FindingChargeDeclined, FindingChargeRefused, FindingLateCharge, FindingSecondCharge, FindingUnknownCharge,
		FindingUnmatchedReturned, FindingRefundRefused, FindingRefundFailed, FindingRefundFailedLate, FindingRefundAdopted,
		FindingRefundUnexplained, FindingMismatch, FindingDispute,
	}
}

// Monitor receives findings after the transaction that acted on them has committed. detail is an id or the provider's
// codes, never free text from the provider.
type Monitor interface {
	Finding(ctx context.Context, kind FindingKind, ref OrderRef, detail string)
}

// finding is a finding that is reported once its transaction has committed.
type finding struct {
	kind   FindingKind
	detail string
}

func (s *Service) report(ctx context.Context, ref OrderRef, found []finding) {
	for _, f := range found {
		s.monitor.Finding(ctx, f.kind, ref, f.detail)
	}
}
