package postgres

import (
	"time"

	"example.com/orders/internal/domain"
)

// nullableShipment is the three shipment columns. Either all or none are NULL.
type nullableShipment struct {
	carrier, tracking *string
	at                *time.Time
}

func (n nullableShipment) value() *domain.Shipment {
	if n.at == nil {
		return nil
	}
	return &domain.Shipment{Carrier: *n.carrier, TrackingNumber: *n.tracking, ShippedAt: n.at.UTC()}
}

type nullableCancellation struct {
	reason *string
	at     *time.Time
}

func (n nullableCancellation) value() *domain.Cancellation {
	if n.at == nil {
		return nil
	}
	return &domain.Cancellation{Reason: *n.reason, CancelledAt: n.at.UTC()}
}

// instant is a nullable time: zero for NULL.
func instant(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// nullable is a time as a parameter: NULL for zero.
func nullable(t time.Time) *time.Time { return present(!t.IsZero(), t) }
