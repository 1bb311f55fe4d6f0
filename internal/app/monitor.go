package app

import "context"

// FindingKind names something about money that an operator counts or is alerted to.
type FindingKind string

// The findings. docs/runbooks/payment-findings.md says of each what the service does by itself and what is left to do.
const (
	FindingChargeDeclined    FindingKind = "charge_declined"    // the order is cancelled
	FindingChargeRefused     FindingKind = "charge_refused"     // neither declined nor passing: a person has to look
	FindingLateCharge        FindingKind = "late_charge"        // succeeded after it was given up: adopted, refunded
	FindingSecondCharge      FindingKind = "second_charge"      // another intent of a paid order: returned
	FindingUnknownCharge     FindingKind = "unknown_charge"     // of an order that is not here: returned
	FindingRefundRefused     FindingKind = "refund_refused"     // not final: a person has to look
	FindingRefundFailed      FindingKind = "refund_failed"      // the balance is back; the customer has no money yet
	FindingRefundAdopted     FindingKind = "refund_adopted"     // made at the provider, unknown here
	FindingRefundUnexplained FindingKind = "refund_unexplained" // made at the provider, does not fit the payment
	FindingMismatch          FindingKind = "mismatch"           // the provider's answer is about something else
	FindingDispute           FindingKind = "dispute"            // the customer disputes the charge at the bank
	FindingRefundFailedLate  FindingKind = "refund_failed_late" // had succeeded, has failed since: the balance is back
	FindingUnmatchedReturned FindingKind = "unmatched_returned" // a second or unknown charge has gone back
)

// FindingKinds lists every kind.
func FindingKinds() []FindingKind {
	return []FindingKind{
		FindingChargeDeclined, FindingChargeRefused, FindingLateCharge, FindingSecondCharge, FindingUnknownCharge,
		FindingUnmatchedReturned, FindingRefundRefused, FindingRefundFailed, FindingRefundFailedLate, FindingRefundAdopted,
		FindingRefundUnexplained, FindingMismatch, FindingDispute,
	}
}

// Monitor is told of findings, after the transaction that acted on them has committed. detail is an id or the
// provider's codes, never its text.
type Monitor interface {
	Finding(ctx context.Context, kind FindingKind, ref OrderRef, detail string)
}

// finding is one that waits for its transaction to commit.
type finding struct {
	kind   FindingKind
	detail string
}

func (s *Service) report(ctx context.Context, ref OrderRef, found []finding) {
	for _, f := range found {
		s.monitor.Finding(ctx, f.kind, ref, f.detail)
	}
}
