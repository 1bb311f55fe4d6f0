package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/orders/internal/dev/sandbox"
)

// BenchmarkPayment creates, confirms, reads and lists, with a state file and 5,000 orders there already: what a charge
// costs must not grow with what was charged before.
func BenchmarkPayment(b *testing.B) {
	s, err := sandbox.New(sandbox.Config{
		Issuer: "http://issuer.test", Audience: "a", StateFile: filepath.Join(b.TempDir(), "sandbox.json"),
	})
	if err != nil {
		b.Fatal(err)
	}
	handler, n := s.Handler(), new(atomic.Int64)
	do := func(method, path, key string, form url.Values) string {
		r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header = http.Header{
			"Authorization": {"Bearer sk_test_1"}, "Content-Type": {"application/x-www-form-urlencoded"}, "Idempotency-Key": {key},
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	pay := func() {
		order := fmt.Sprint(n.Add(1))
		_, made, _ := strings.Cut(do(http.MethodPost, intents, order, form("confirm", "", "metadata[order_id]", order)), `"id":"`)
		id, _, _ := strings.Cut(made, `"`)
		do(http.MethodPost, intents+"/"+id+"/confirm", order+":confirm", nil)
		do(http.MethodGet, intents+"/"+id, "", nil)
		do(http.MethodGet, "/v1/refunds?payment_intent="+id, "", nil)
		do(http.MethodGet, intents+"/search?query="+url.QueryEscape("metadata['order_id']:'"+order+"'"), "", nil)
	}
	for range 5000 {
		pay()
	}
	for b.Loop() {
		pay()
	}
}
