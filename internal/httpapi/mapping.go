package httpapi

import (
	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

const defaultLimit = 20

func limitOf(limit *int32) int {
	if limit == nil {
		return defaultLimit
	}
	return int(*limit)
}

// text returns an optional member; an absent one is empty.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func pageOf[T any](p app.Page[T], limit int, cursor func(T) string) openapi.Page {
	page := openapi.Page{Limit: int32(limit), HasMore: p.More} //nolint:gosec // G115: at most 100
	if p.More {
		page.NextCursor = new(cursor(p.Items[len(p.Items)-1]))
	}
	return page
}

func money(m domain.Money) openapi.Money {
	return openapi.Money{Amount: m.Amount, Currency: m.Currency}
}

func toAPIMoney(m openapi.Money) domain.Money {
	return domain.Money{Amount: m.Amount, Currency: m.Currency}
}

func addressOf(a openapi.Address) domain.Address {
	return domain.Address{
		Name: a.Name, Line1: a.Line1, Line2: text(a.Line2), City: a.City, PostalCode: a.PostalCode, Country: a.Country,
	}
}

func address(a domain.Address) openapi.Address {
	out := openapi.Address{Name: a.Name, Line1: a.Line1, City: a.City, PostalCode: a.PostalCode, Country: a.Country}
	if a.Line2 != "" {
		out.Line2 = &a.Line2
	}
	return out
}

func order(o domain.OrderState) openapi.Order {
	out := openapi.Order{
		ID: o.ID, Status: openapi.OrderStatus(o.Status), Lines: make([]openapi.OrderLine, len(o.Lines)),
		Total: money(o.Total), ShippingAddress: address(o.Address), CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	for i, l := range o.Lines {
		out.Lines[i] = openapi.OrderLine{SKU: l.SKU, Name: l.Name, Quantity: l.Quantity, UnitPrice: money(l.UnitPrice)}
	}
	if s := o.Shipment; s != nil {
		out.Shipment = &openapi.Shipment{Carrier: s.Carrier, TrackingNumber: s.TrackingNumber, ShippedAt: s.ShippedAt}
	}
	if c := o.Cancellation; c != nil {
		out.Cancellation = &openapi.Cancellation{Reason: c.Reason, CancelledAt: c.CancelledAt}
	}
	return out
}

func payment(p domain.PaymentState) openapi.Payment {
	out := openapi.Payment{
		OrderID: p.OrderID, Status: openapi.PaymentStatus(p.Status), Amount: money(p.Amount), Refunded: money(p.Refunded()),
		Refunds: make([]openapi.Refund, len(p.Refunds)), UpdatedAt: p.UpdatedAt,
	}
	for i, r := range p.Refunds {
		out.Refunds[i] = openapi.Refund{
			ID: r.ID, Amount: money(r.Amount), Status: openapi.RefundStatus(r.Status), Reason: r.Reason,
		}
	}
	return out
}

func orderTag(o domain.OrderState) string { return orderResource(o.Tenant, o.ID).tag(o.Version) }

func productTag(p domain.ProductState) string { return productResource(p.Tenant, p.SKU).tag(p.Version) }

func product(p domain.ProductState) openapi.Product {
	return openapi.Product{SKU: p.SKU, Name: p.Details.Name, Price: money(p.Details.Price), Active: p.Details.Active}
}
