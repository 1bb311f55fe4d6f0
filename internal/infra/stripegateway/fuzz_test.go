package stripegateway_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/stripegateway"
)

// one answers every request with the same answer, without a network.
type one struct {
	status int
	header http.Header
	body   string
}

func (o one) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: o.status, Header: o.header.Clone(), Body: io.NopCloser(strings.NewReader(o.body))}, nil
}

var (
	providerID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)
	safeWords  = regexp.MustCompile(`^[A-Za-z0-9_./: ()'",;-]{1,400}$`)
)

// FuzzAnswer: whatever the provider answers, no call panics; an error quotes nothing; what is believed is about what was
// asked, in ids and names that can be stored; and a 429 is waited out for no longer than is sensible.
func FuzzAnswer(f *testing.F) {
	names := allCalls()
	seed := func(status int, body string, calls ...string) { // few: all are run before anything new is tried
		for _, call := range calls {
			f.Add(byte(slices.Index(names, call)), status, body, "7", "req_1")
		}
	}
	event := func(object string) string { return list(`{"id":"evt_1","created":1,"data":{"object":` + object + `}}`) }
	seed(200, intentJSON(), "create", "confirm", "retrieve")
	seed(200, intentJSON("last_payment_error", `{"code":"x","type":"card_error"}`), "cancel")
	seed(200, refundJSON(), "refund")
	seed(200, refundJSON("payment_intent", `{"id":"pi_1"}`), "refund")
	seed(200, list(intentJSON()), "search", "intents")
	seed(200, list(intentJSON("metadata", `{"tenant_id":"a\u0085b","order_id":"01980000-0000-7000-8000-000000000001"}`)), "intents")
	seed(200, list(refundJSON()), "list of refunds", "refunds")
	seed(200, list(refundJSON("payment_intent", `"pi\u0000"`)), "list of refunds", "refunds")
	seed(200, event(refundJSON()), "events")
	seed(200, event(`{"object":"charge","id":"ch_1","payment_intent":"pi_1","amount_refunded":1,"currency":"eur"}`), "events")
	seed(200, list(`null`), "events", "search")
	for _, status := range []int{400, 402, 409, 429, 500} {
		seed(status, `{"error":{"type":"card_error","code":"card_declined","decline_code":"lost"}}`, "confirm")
		seed(status, `{"error":{"type":"idempotency_error"}}`, "refund")
	}
	f.Fuzz(func(t *testing.T, which byte, status int, body, after, request string) {
		if status < 200 || status > 599 {
			return
		}
		g := stripegateway.New(stripegateway.Config{APIKey: "sk_test_123", Timeout: time.Minute, Transport: one{
			status, http.Header{"Content-Type": {"application/json"}, "Retry-After": {after}, "Request-Id": {request}}, body,
		}})
		err := believed(t, g, names[int(which)%len(names)])
		if err == nil {
			require.Less(t, status, 300)
			return
		}
		require.Regexp(t, safeWords, err.Error())
		if limited, ok := errors.AsType[*app.RateLimitedError](err); ok {
			require.True(t, limited.After == 0 || limited.After >= time.Second && limited.After <= 5*time.Minute, limited.After)
		}
	})
}

// believed makes a call and checks what it returns.
func believed(t *testing.T, g *stripegateway.Gateway, name string) error {
	t.Helper()
	ctx := t.Context()
	switch name {
	case "refund":
		r, err := g.CreateRefund(ctx, refund)
		if err == nil {
			requireRefund(t, r)
			require.Equal(t, refund.Amount, r.Amount)
			require.Equal(t, refund.RefundID, r.RefundID)
		}
		return err
	case "list of refunds":
		all, err := g.ListRefunds(ctx, charge)
		for _, r := range all {
			requireRefund(t, r)
			require.Equal(t, charge.IntentID, r.IntentID)
		}
		return err
	case "search":
		all, err := g.SearchIntents(ctx, charge)
		for _, intent := range all {
			requireIntent(t, intent)
			require.Equal(t, charge.Amount, intent.Amount)
		}
		return err
	case "intents", "refunds", "events":
		stream := map[string]app.ProviderStream{"intents": app.StreamIntents, "refunds": app.StreamRefunds, "events": app.StreamEvents}[name]
		p, err := g.List(ctx, windowOf(stream))
		requirePage(t, p)
		return err
	}
	call := map[string]func() (app.Intent, error){
		"create":  func() (app.Intent, error) { return g.CreateIntent(ctx, charge) },
		"confirm": func() (app.Intent, error) { return g.ConfirmIntent(ctx, charge) },
		"cancel":  func() (app.Intent, error) { return g.CancelIntent(ctx, charge) },
	}[name]
	if call == nil {
		call = func() (app.Intent, error) { return g.RetrieveIntent(ctx, charge) }
	}
	intent, err := call()
	if err == nil {
		requireIntent(t, intent)
		require.Equal(t, charge.Amount, intent.Amount)
	}
	return err
}

func requireIntent(t *testing.T, i app.Intent) {
	t.Helper()
	require.Regexp(t, providerID, i.ID)
	require.Regexp(t, `^[a-z_]{1,40}$`, i.Status)
	require.Regexp(t, `^[A-Za-z0-9_./-]{0,255}$`, i.LastError)
}

func requireRefund(t *testing.T, r app.ProviderRefund) {
	t.Helper()
	require.Regexp(t, providerID, r.ID)
	require.Regexp(t, `^[A-Za-z0-9_]{0,255}$`, r.IntentID)
	require.Regexp(t, `^[A-Za-z0-9_./-]{0,64}$`, r.Failure)
	require.Contains(t, []domain.RefundStatus{domain.RefundPending, domain.RefundSucceeded, domain.RefundFailed}, r.Status)
}

func requirePage(t *testing.T, p app.ProviderPage) {
	t.Helper()
	require.True(t, !p.More || providerID.MatchString(p.Last))
	for _, o := range p.Objects {
		require.False(t, strings.ContainsFunc(o.Ref.Tenant, unicode.IsControl))
		require.LessOrEqual(t, len(o.Ref.Tenant), 255)
		switch {
		case o.Intent != nil:
			require.Regexp(t, providerID, o.Intent.ID)
		case o.Refund != nil:
			require.Regexp(t, providerID, o.Refund.ID)
			require.Regexp(t, `^[A-Za-z0-9_]{0,255}$`, o.Refund.IntentID)
		case o.Charge != nil:
			require.Regexp(t, providerID, o.Charge.IntentID)
		}
	}
}
