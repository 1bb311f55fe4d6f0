package docs_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/stripegateway"
)

// sentKeys is the idempotency keys that the gateway sends, with the ids in them replaced by their names.
func sentKeys(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	ref, refund := app.OrderRef{Tenant: "acme", OrderID: uuid.New()}, uuid.New()
	names := strings.NewReplacer(ref.Tenant, "<tenant>", ref.OrderID.String(), "<order_id>", refund.String(), "<refund_id>")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, names.Replace(r.Header.Get("Idempotency-Key")))
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(provider.Close)
	g := stripegateway.New(stripegateway.Config{APIKey: "sk_test", BaseURL: provider.URL, Timeout: time.Minute})
	amount := domain.Money{Amount: 100, Currency: "EUR"}
	intent := app.IntentRequest{Ref: ref, IntentID: "pi_1", Amount: amount, PaymentMethod: "pm_1", Generation: 1}
	_, _ = g.CreateIntent(t.Context(), intent) // only the requests matter: each is answered with a 500
	_, _ = g.ConfirmIntent(t.Context(), intent)
	_, _ = g.CancelIntent(t.Context(), intent)
	_, _ = g.CreateRefund(t.Context(), app.RefundRequest{
		Ref: ref, RefundID: refund, IntentID: "pi_1", Amount: amount, Generation: 1,
	})
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(keys)
}

// Ensure every external effect names a job that has a record and that states the effect with the same provider key, and
// that the keys of the jobs are exactly those that the gateway sends.
//
// Standard: litespec/ext/concurrency#route-required-external-effects-durably
func TestExternalEffectsAreDurable(t *testing.T) {
	t.Parallel()
	all := useCases(t)
	stated := map[string]bool{}
	for name, u := range all {
		for _, e := range u.Effects {
			job := all[e.Job]
			require.True(t, job.isJob(), "%s: the job of its effect", name)
			if u.isJob() {
				require.Equal(t, name, e.Job, "a job's own effect")
				stated[e.ProviderKey] = true
				continue
			}
			require.Equal(t, "outbox", e.DurableBy, "%s: a call of the provider before its commit", name)
			require.True(t, slices.ContainsFunc(job.Effects, func(of effect) bool { return of.ProviderKey == e.ProviderKey }),
				"%s does not state the effect %s, as %s does", e.Job, e.ProviderKey, name)
		}
	}
	sent := map[string]bool{}
	for _, key := range sentKeys(t) {
		sent[key] = true
	}
	require.Equal(t, sent, stated, "the keys that the gateway sends, and those of the jobs' records")
}
