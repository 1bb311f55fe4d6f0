package sandbox_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// orders makes intents for orders 0 to n-1, a minute apart, and returns when the first was made.
func (b *bench) orders(n int) time.Time {
	first := b.clock.Now()
	for i := range n {
		b.create(strconv.Itoa(i), "pm_card_visa")
		b.clock.advance(time.Minute)
	}
	return first
}

// listed is the orders of a list of intents.
func (b *bench) listed(p *stripe.PaymentIntentListParams) (orders []string) {
	b.t.Helper()
	for pi, err := range b.stripe.V1PaymentIntents.List(b.t.Context(), p).All(b.t.Context()) {
		if err != nil {
			b.t.Fatal(err)
		}
		orders = append(orders, pi.Metadata["order_id"])
	}
	return orders
}

// Ensure that pages of any size walk through all intents once, the newest first.
func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 7
	b.orders(n)
	for limit := int64(1); limit <= n+1; limit++ {
		p := &stripe.PaymentIntentListParams{}
		p.Limit = stripe.Int64(limit)
		equal(t, "forward", strings.Join(b.listed(p), ""), "6543210")
	}
}

// getPage is the ids of one page, as sent.
func (b *bench) getPage(query string) (ids []string) {
	b.t.Helper()
	for _, part := range strings.Split(b.get(intents+"?"+query).body, `{"id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	return ids
}

// Ensure the bound on the time of creation holds at its edge, and that what this project does not send is refused.
func TestListBounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.orders(5)
	at := func(i int) string { return strconv.FormatInt(first.Add(time.Duration(i)*time.Minute).Unix(), 10) }
	all := b.getPage("limit=100") // 4 3 2 1 0
	slices.Reverse(all)
	for query, want := range map[string][]int{
		"created[gte]=" + at(2):                               {4, 3, 2},
		"starting_after=" + all[3] + "&limit=2":               {2, 1},
		"starting_after=" + all[4] + "&created[gte]=" + at(2): {3, 2},
	} {
		ids := []string{}
		for _, i := range want {
			ids = append(ids, all[i])
		}
		equal(t, query, strings.Join(b.getPage(query), " "), strings.Join(ids, " "))
	}
	for _, bad := range []string{
		"limit=0", "limit=101", "starting_after=pi_none", "ending_before=" + all[0], "customer=x", "created[gte]=yesterday",
		"created[gte]=-1", "created[gt]=" + at(2), "created[lte]=" + at(2), "created[lt]=" + at(2), "created=" + at(2),
	} {
		equal(t, bad, b.get(intents+"?"+bad).status, http.StatusBadRequest)
	}
}

// Ensure the refunds of one intent are listed apart from those of others, at once.
func TestListRefundsOfAnIntent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.mustCharge("o1", "pm_card_visa"), b.mustCharge("o2", "pm_card_visa")
	for i := range 5 {
		_, err := b.refund(one.ID, "one-"+strconv.Itoa(i), 100)
		if err == nil {
			_, err = b.refund(other.ID, "other-"+strconv.Itoa(i), 100)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &stripe.RefundListParams{PaymentIntent: stripe.String(one.ID)}
	p.Limit = stripe.Int64(2)
	var got []string
	for r, err := range b.stripe.V1Refunds.List(t.Context(), p).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Metadata["refund_id"])
	}
	equal(t, "refunds", strings.Join(got, " "), "one-4 one-3 one-2 one-1 one-0")
}

// Ensure the search knows neither an intent nor what became of it before the lag has passed, while a read knows at once.
func TestSearchLags(t *testing.T) {
	t.Parallel()
	b := setup(t)
	found := func(text string) bool {
		t.Helper()
		r := b.get(intents + "/search?query=" + url.QueryEscape("metadata['order_id']:'o1'"))
		equal(t, "search", r.status, http.StatusOK)
		return strings.Contains(r.body, text)
	}
	pi := b.create("o1", "pm_card_visa")
	b.clock.advance(sandbox.DefaultSearchLag - time.Nanosecond)
	equal(t, "too early", found(`"order_id":"o1"`), false)
	b.clock.advance(time.Nanosecond)
	equal(t, "in time", found(`"order_id":"o1"`), true)
	if _, err := b.confirm(pi.ID, "k"); err != nil {
		t.Fatal(err)
	}
	equal(t, "still the old state", found(`"status":"requires_confirmation"`), true)
	equal(t, "read at once", strings.Contains(b.getIntent(pi.ID), `"status":"succeeded"`), true)
	b.clock.advance(sandbox.DefaultSearchLag)
	equal(t, "the new state", found(`"status":"succeeded"`), true)
}
