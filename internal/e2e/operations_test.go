package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// request is an operation of the contract with the first request that the contract shows for it, and a resource to send it to:
// an order of its own, which has been paid, or the product of the shop. So a new operation is tested by itself.
type request struct {
	testkit.Operation
	path     string
	resource string // whose tag it takes
}

// requests makes a request for each operation that the test is about. A worker must run where there are orders among them.
func (s shop) requests(about func(testkit.Operation) bool) (all []request) {
	s.t.Helper()
	for _, o := range testkit.Operations(s.t) {
		if about(o) {
			all = append(all, s.request(o))
		}
	}
	require.NotEmpty(s.t, all)
	return all
}

var firstResource = regexp.MustCompile(`^/v1/[a-z]+/[^/]+`)

func (s shop) request(o testkit.Operation) request {
	s.t.Helper()
	path := strings.Replace(o.Path, "{sku}", shopSKU, 1)
	if before, after, ok := strings.Cut(path, "{order_id}"); ok {
		path = before + s.placePaid("pm_card_visa") + after
	}
	return request{o, path, firstResource.FindString(path)}
}

// tag is the tag that the resource has now; empty: the request is sent to no resource that has one.
func (r request) tag(t testing.TB, c *testkit.Caller) string {
	t.Helper()
	if r.resource == "" {
		return ""
	}
	return c.Get(r.resource).Header.Get("ETag")
}

// send may be called by any goroutine. The key is left out where the operation takes none.
func (r request) send(c *testkit.Caller, key string, headers ...string) testkit.Answer {
	if r.Keyed {
		headers = append([]string{"Idempotency-Key", key}, headers...)
	}
	return send(c, r.Method, r.path, r.Body, headers...)
}

// book notes what an accepted request has put on the shelf or taken off it.
func (s shop) book(r request) {
	s.t.Helper()
	if r.ID == "adjust-stock" {
		s.Stocked(s.t, "default", shopSKU, -3)
	}
}
