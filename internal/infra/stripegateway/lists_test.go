package stripegateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
)

func eventJSON(id, kind, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"data":{"object":%s}}`, id, kind, object)
}

// Ensure a page of a stream is what the provider holds, its own and foreign objects alike, whatever their status.
func TestStreams(t *testing.T) {
	t.Parallel()
	foreign := intentJSON("id", `"pi_2"`, "metadata", noMetadata, "status", `"requires_capture"`)
	ours := app.Intent{ID: "pi_1", Status: app.IntentSucceeded, Amount: charge.Amount}
	theirs := app.Intent{ID: "pi_2", Status: "requires_capture", Amount: charge.Amount}
	ourRefund := app.ProviderRefund{
		ID: "re_1", RefundID: refund.RefundID, IntentID: "pi_1", Amount: refund.Amount, Status: domain.RefundSucceeded,
	}
	theirRefund := app.ProviderRefund{ID: "re_2", IntentID: "pi_1", Amount: refund.Amount, Status: domain.RefundSucceeded}
	for stream, test := range map[app.ProviderStream]struct {
		path, body, last string
		objects          []app.ProviderObject
	}{
		app.StreamIntents: {"/v1/payment_intents", list(intentJSON(), foreign), "pi_2", []app.ProviderObject{
			{Ref: ref, Intent: &ours}, {Intent: &theirs},
		}},
		app.StreamRefunds: {"/v1/refunds", list(refundJSON(), refundJSON("id", `"re_2"`, "metadata", noMetadata)), "re_2", []app.ProviderObject{
			{Ref: ref, Refund: &ourRefund}, {Refund: &theirRefund},
		}},
		app.StreamEvents: {"/v1/events", list(
			eventJSON("evt_1", "payment_intent.succeeded", intentJSON()), eventJSON("evt_2", "refund.failed", refundJSON()),
			eventJSON("evt_3", "customer.created", `{"object":"customer","id":"cus_1"}`),
		), "evt_3", []app.ProviderObject{{Ref: ref, Intent: &ours}, {Ref: ref, Refund: &ourRefund}}},
	} {
		p := answers(t, 200, test.body)
		got, err := p.gateway(time.Minute).List(t.Context(), windowOf(stream))
		require.NoError(t, err)
		require.Equal(t, app.ProviderPage{Objects: test.objects, Last: test.last}, got)
		require.Equal(t, test.path, p.requests()[0].path)
	}
	_, err := answers(t, 200, list()).gateway(time.Minute).List(t.Context(), windowOf("customers"))
	require.Error(t, err)
}

// Ensure a query asks for one page of its window, and goes on after the last one.
func TestStreamQueries(t *testing.T) {
	t.Parallel()
	p := answers(t, 200, strings.Replace(list(intentJSON()), "false", "true", 1))
	q := windowOf(app.StreamIntents)
	q.After = "pi_9"
	got, err := p.gateway(time.Minute).List(t.Context(), q)
	require.NoError(t, err)
	require.True(t, got.More)
	require.Equal(t, "pi_1", got.Last)
	require.Equal(t, form(nil, map[string]string{
		"created[gte]": "1700000000", "limit": "100", "starting_after": "pi_9",
	}), p.requests()[0].form)
	require.Len(t, p.requests(), 1)

	_, err = p.gateway(time.Minute).List(t.Context(), app.ProviderQuery{Stream: app.StreamIntents, Limit: 1000})
	require.NoError(t, err)
	require.Equal(t, form(nil, map[string]string{"limit": "100"}), p.requests()[1].form)
}

// Ensure a page that is too large is asked for in smaller parts: large objects of other systems must not stop the
// stream.
func TestLargePages(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		size := 30 << 10
		if r.URL.Query().Get("limit") != "25" {
			size = 2 << 20
		}
		reply(w, 200, list(intentJSON("description", `"`+strings.Repeat("x", size)+`"`)))
	})
	got, err := p.gateway(time.Minute).List(t.Context(), windowOf(app.StreamIntents))
	require.NoError(t, err)
	require.Len(t, got.Objects, 1)

	p = answers(t, 200, list(intentJSON("description", `"`+strings.Repeat("x", 2<<20)+`"`)))
	requireSafe(t, call(t.Context(), p.gateway(time.Minute), "intents"))
	require.Len(t, p.requests(), 7)
}

// Ensure the refunds of an intent are found on whatever page they are, and each page goes on after the one before.
func TestPagesOfRefunds(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("starting_after") {
		case "":
			reply(w, 200, strings.Replace(list(refundJSON("id", `"re_3"`), refundJSON("id", `"re_2"`)), "false", "true", 1))
		case "re_2":
			reply(w, 200, list(refundJSON("id", `"re_1"`)))
		default:
			reply(w, 500, "")
		}
	})
	got, err := p.gateway(time.Minute).ListRefunds(t.Context(), charge)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, "re_1", got[2].ID)
}

// Ensure a search goes on with the page that the provider names.
func TestPagesOfASearch(t *testing.T) {
	t.Parallel()
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("page") {
		case "":
			reply(w, 200, `{"object":"search_result","has_more":true,"next_page":"two","data":[`+intentJSON()+`]}`)
		case "two":
			reply(w, 200, list(intentJSON("id", `"pi_2"`)))
		}
	})
	got, err := p.gateway(time.Minute).SearchIntents(t.Context(), charge)
	require.NoError(t, err)
	require.Len(t, got, 2)
}
