package stripegateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/app"
)

// list is a page of Stripe's.
func list(items ...string) string {
	return `{"object":"list","has_more":false,"data":[` + strings.Join(items, ",") + `]}`
}

func intent(id, status, tenant string) string {
	return fmt.Sprintf(`{"id":%q,"status":%q,"metadata":{"tenant_id":%q,"order_id":%q}}`, id, status, tenant, ref.OrderID)
}

// Ensure a lookup finds the order's charge and no other tenant's, prefers one that succeeded, and tells a charge that has
// no outcome from none at all.
func TestFindCharge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		items   []string
		answer  app.ChargeAnswer
		found   bool
		unknown bool
	}{
		"none":                   {nil, app.ChargeAnswer{}, false, false},
		"another tenant's":       {[]string{intent("pi_1", "succeeded", "acme")}, app.ChargeAnswer{}, false, false},
		"succeeded":              {[]string{intent("pi_1", "succeeded", "default")}, app.ChargeAnswer{ChargeID: "pi_1", Succeeded: true}, true, false},
		"declined":               {[]string{intent("pi_1", "requires_payment_method", "default")}, app.ChargeAnswer{Refusal: "payment intent is requires_payment_method"}, true, false},
		"still on its way":       {[]string{intent("pi_1", "processing", "default")}, app.ChargeAnswer{}, false, true},
		"succeeded and declined": {[]string{intent("pi_2", "canceled", "default"), intent("pi_1", "succeeded", "default"), intent("pi_0", "canceled", "default")}, app.ChargeAnswer{ChargeID: "pi_1", Succeeded: true}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, found, err := answers(t, http.StatusOK, list(test.items...)).gateway(time.Minute).FindCharge(t.Context(), ref)
			require.Equal(t, test.unknown, err != nil, err)
			require.Equal(t, test.found, found)
			require.Equal(t, test.answer, answer)
		})
	}
}

func madeRefund(id, status string) string {
	return fmt.Sprintf(`{"id":"re_1","status":%q,"metadata":{"refund_id":%q}}`, status, id)
}

// Ensure a lookup finds the refund by its own id among all of the charge, on whatever page it is.
func TestFindRefund(t *testing.T) {
	t.Parallel()
	other, own := "01980000-0000-7000-8000-00000000000f", refund.RefundID.String()
	tests := map[string]struct {
		items          []string
		succeeded      bool
		found, unknown bool
	}{
		"none":             {nil, false, false, false},
		"another":          {[]string{madeRefund(other, "succeeded")}, false, false, false},
		"succeeded":        {[]string{madeRefund(other, "failed"), madeRefund(own, "succeeded")}, true, true, false},
		"failed":           {[]string{madeRefund(own, "failed")}, false, true, false},
		"still on its way": {[]string{madeRefund(own, "pending")}, false, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, found, err := answers(t, http.StatusOK, list(test.items...)).gateway(time.Minute).FindRefund(t.Context(), refund)
			require.Equal(t, test.unknown, err != nil, err)
			require.Equal(t, test.found, found)
			require.Equal(t, test.succeeded, answer.Succeeded)
		})
	}
	t.Run("on the second page", func(t *testing.T) {
		t.Parallel()
		p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("starting_after") == "" {
				reply(w, 200, strings.Replace(list(madeRefund(other, "succeeded")), "false", "true", 1))
				return
			}
			reply(w, 200, list(madeRefund(own, "succeeded")))
		})
		answer, found, err := p.gateway(time.Minute).FindRefund(t.Context(), refund)
		require.NoError(t, err)
		require.True(t, found && answer.Succeeded)
		require.Len(t, p.requests(), 2)
	})
}
