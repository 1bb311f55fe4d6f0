package stripegateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/form"

	"example.com/orders/internal/app"
)

const (
	pageSize = 100 // Stripe's maximum
	maxPages = 100 // of one lookup
)

var errTooManyPages = errors.New("provider's list does not end")

// page is one page of a list or of a search. stripe-go's own lists fetch every page, and panic on a null item.
type page[T any] struct {
	stripe.APIResource

	Object   string  `json:"object"`
	Data     []*T    `json:"data"`
	HasMore  bool    `json:"has_more"`
	NextPage *string `json:"next_page"` // of a search
}

// listParams are the parameters of a list or of a search.
type listParams interface{ GetParams() *stripe.Params }

func getPage[T any](ctx context.Context, g *Gateway, doing, path string, params listParams) (*page[T], error) {
	values := &form.Values{}
	form.AppendTo(values, params)
	common := params.GetParams()
	common.Context = ctx
	p := &page[T]{}
	err := g.backend.CallRaw(http.MethodGet, path, g.apiKey, []byte(values.Encode()), common, p)
	if err != nil {
		return nil, readFailed(ctx, doing, err)
	}
	if !p.isList() {
		return nil, providerDown{fmt.Errorf("%s: %w", doing, errUnreadable)}
	}
	return p, nil
}

// isList reports whether an answer is a list. Another answer must not be read as an empty list, because a missing
// refund would be created again.
func (p *page[T]) isList() bool {
	isNil := func(item *T) bool { return item == nil }
	return (p.Object == "list" || p.Object == "search_result") && p.Data != nil && !slices.ContainsFunc(p.Data, isNil)
}

// SearchIntents implements app.PaymentProvider. The tenant is not part of the query but compared here, because it can
// contain any text and the search may not match every character.
func (g *Gateway) SearchIntents(ctx context.Context, r app.IntentRequest) ([]app.Intent, error) {
	const doing = "search payment intents"
	params := &stripe.PaymentIntentSearchParams{}
	params.Query = fmt.Sprintf("metadata['%s']:'%s'", metaOrder, r.Ref.OrderID)
	params.Limit = stripe.Int64(pageSize)
	var found []app.Intent
	for range maxPages {
		p, err := getPage[stripe.PaymentIntent](ctx, g, doing, "/v1/payment_intents/search", params)
		if err != nil {
			return nil, err
		}
		for _, got := range p.Data {
			if refOf(got.Metadata) != r.Ref {
				continue
			}
			r.IntentID = got.ID
			intent, err := checkedIntent(doing, got, r)
			if err != nil {
				return nil, err
			}
			found = append(found, intent)
		}
		if !p.HasMore {
			return found, nil
		}
		params.Page = p.NextPage
	}
	return nil, fmt.Errorf("%s: %w", doing, errTooManyPages)
}

// ListRefunds implements app.PaymentProvider.
func (g *Gateway) ListRefunds(ctx context.Context, r app.IntentRequest) ([]app.ProviderRefund, error) {
	const doing = "list refunds"
	params := &stripe.RefundListParams{PaymentIntent: stripe.String(r.IntentID)}
	params.Limit = stripe.Int64(pageSize)
	var found []app.ProviderRefund
	for range maxPages {
		p, err := getPage[stripe.Refund](ctx, g, doing, "/v1/refunds", params)
		if err != nil {
			return nil, err
		}
		for _, got := range p.Data {
			refund, err := checkedRefund(doing, got, r)
			if err != nil {
				return nil, err
			}
			found = append(found, refund)
			params.StartingAfter = stripe.String(refund.ID)
		}
		if !p.HasMore {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", doing, errTooManyPages)
}

// List implements app.PaymentProvider. Stripe's times are in seconds, so the fraction of From is dropped; no object is
// missed. Unknown statuses are returned unchanged.
func (g *Gateway) List(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	list := g.listOf(q.Stream)
	if list == nil {
		return app.ProviderPage{}, fmt.Errorf("there is no stream %q", q.Stream)
	}
	q.Limit = min(max(q.Limit, 1), pageSize)
	for {
		p, err := list(ctx, q)
		if q.Limit == 1 || !errors.Is(err, errTooLarge) {
			return p, err
		}
		q.Limit /= 2 // objects of other systems can be large
	}
}

type lister func(context.Context, app.ProviderQuery) (app.ProviderPage, error)

func (g *Gateway) listOf(s app.ProviderStream) lister {
	switch s {
	case app.StreamIntents:
		return g.listIntents
	case app.StreamRefunds:
		return g.listRefunds
	case app.StreamEvents:
		return g.listEvents
	default:
		return nil
	}
}

func (g *Gateway) listIntents(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	const doing = "list payment intents"
	params := &stripe.PaymentIntentListParams{CreatedRange: created(q), ListParams: pageOf(q)}
	p, err := getPage[stripe.PaymentIntent](ctx, g, doing, "/v1/payment_intents", params)
	if err != nil {
		return app.ProviderPage{}, err
	}
	return pageFrom(doing, p, func(got *stripe.PaymentIntent) (string, int64, app.ProviderObject, error) {
		return got.ID, got.Created, intentObject(got), nil
	})
}

func (g *Gateway) listRefunds(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	const doing = "list refunds"
	params := &stripe.RefundListParams{CreatedRange: created(q), ListParams: pageOf(q)}
	p, err := getPage[stripe.Refund](ctx, g, doing, "/v1/refunds", params)
	if err != nil {
		return app.ProviderPage{}, err
	}
	return pageFrom(doing, p, func(got *stripe.Refund) (string, int64, app.ProviderObject, error) {
		return got.ID, got.Created, refundObject(got), nil
	})
}

// listedEvents are the types of the events whose object is an intent, a refund or a charge that was refunded.
func listedEvents() []*string {
	return stripe.StringSlice([]string{
		"payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded",
		"payment_intent.payment_failed", "payment_intent.canceled",
		"refund.created", "refund.updated", "refund.failed", "charge.refunded",
	})
}

func (g *Gateway) listEvents(ctx context.Context, q app.ProviderQuery) (app.ProviderPage, error) {
	const doing = "list events"
	params := &stripe.EventListParams{CreatedRange: created(q), ListParams: pageOf(q), Types: listedEvents()}
	p, err := getPage[stripe.Event](ctx, g, doing, "/v1/events", params)
	if err != nil {
		return app.ProviderPage{}, err
	}
	return pageFrom(doing, p, func(got *stripe.Event) (string, int64, app.ProviderObject, error) {
		object, err := eventObject(got)
		return got.ID, got.Created, object, err
	})
}

// eventObject is the intent, the refund or the charge that an event is about; zero: none of them.
func eventObject(e *stripe.Event) (app.ProviderObject, error) {
	if e.Data == nil {
		return app.ProviderObject{}, nil
	}
	switch e.Data.Object["object"] {
	case "payment_intent":
		intent := &stripe.PaymentIntent{}
		if json.Unmarshal(e.Data.Raw, intent) != nil || !validID(intent.ID) {
			return app.ProviderObject{}, errUnreadable
		}
		return intentObject(intent), nil
	case "refund":
		refund := &stripe.Refund{}
		if json.Unmarshal(e.Data.Raw, refund) != nil || !validID(refund.ID) {
			return app.ProviderObject{}, errUnreadable
		}
		return refundObject(refund), nil
	case "charge":
		charge := &stripe.Charge{}
		if json.Unmarshal(e.Data.Raw, charge) != nil || !validID(charge.ID) {
			return app.ProviderObject{}, errUnreadable
		}
		return chargeObject(charge), nil
	default:
		return app.ProviderObject{}, nil
	}
}

func intentObject(got *stripe.PaymentIntent) app.ProviderObject {
	intent := intentOf(got)
	return app.ProviderObject{Ref: refOf(got.Metadata), Intent: &intent}
}

func refundObject(got *stripe.Refund) app.ProviderObject {
	refund := refundOf(got)
	return app.ProviderObject{Ref: refOf(got.Metadata), Refund: &refund}
}

// chargeObject returns zero for a charge without an intent, because this service makes none.
func chargeObject(got *stripe.Charge) app.ProviderObject {
	if got.PaymentIntent == nil || !validID(got.PaymentIntent.ID) {
		return app.ProviderObject{}
	}
	return app.ProviderObject{Ref: refOf(got.Metadata), Charge: &app.ProviderCharge{
		IntentID: got.PaymentIntent.ID, Refunded: toMoney(got.AmountRefunded, got.Currency),
	}}
}

// pageFrom maps the items of a page. If more pages follow, it sets the cursor.
func pageFrom[T any](
	doing string, p *page[T], read func(*T) (id string, created int64, o app.ProviderObject, err error),
) (app.ProviderPage, error) {
	out := app.ProviderPage{More: p.HasMore}
	for _, item := range p.Data {
		id, created, o, err := read(item)
		if err != nil || !validID(id) {
			return app.ProviderPage{}, providerDown{fmt.Errorf("%s: %w", doing, errUnreadable)}
		}
		if o != (app.ProviderObject{}) {
			out.Objects = append(out.Objects, o)
		}
		if at := time.Unix(created, 0).UTC(); created > 0 && at.After(out.Newest) {
			out.Newest = at
		}
		out.Last = id
	}
	if out.More && out.Last == "" {
		return app.ProviderPage{}, providerDown{fmt.Errorf("%s: %w", doing, errUnreadable)}
	}
	return out, nil
}

func created(q app.ProviderQuery) *stripe.RangeQueryParams {
	return &stripe.RangeQueryParams{GreaterThanOrEqual: unix(q.From)}
}

// unix is a time in Stripe's seconds; 0, which is not sent: no bound.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func pageOf(q app.ProviderQuery) stripe.ListParams {
	p := stripe.ListParams{Limit: stripe.Int64(int64(q.Limit))}
	if q.After != "" {
		p.StartingAfter = stripe.String(q.After)
	}
	return p
}
