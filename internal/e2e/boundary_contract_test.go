package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/api"
	"example.com/orders/internal/dev/testkit"
)

// Ensure every example of a request in the contract is accepted by the service, under the first status that the contract
// declares for it. What comes back is held to the contract as well.
func TestBoundaryContractExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	contract, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	s := openShop(t)
	s.adjust(shopSKU, 100)
	s.StartWorker(t)
	for _, o := range testkit.Operations(t) {
		op := contract.Paths.Value(o.Path).GetOperation(o.Method)
		if op.RequestBody == nil || len((*op.Security)[0]["oauth2"]) == 0 { // a signed one: see TestProviderEvent
			continue
		}
		examples := op.RequestBody.Value.Content["application/json"].Examples
		require.NotEmpty(t, examples, o.ID)
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			body, err := json.Marshal(examples[name].Value.Value)
			require.NoError(t, err)
			o.Body = string(body)
			r := s.request(o)
			var headers []string
			if o.Versioned {
				headers = []string{"If-Match", r.tag(t, s.alice)}
			}
			a := r.send(s.alice, uuid.NewString(), headers...)
			declared := slices.Min(slices.Collect(maps.Keys(op.Responses.Map())))
			require.Equal(t, declared, strconv.Itoa(a.Status), "%s %s: %s", o.ID, name, a.Body)
			s.book(r)
		}
	}
}

// Ensure what the contract excludes is refused, and what it allows at its bounds is accepted.
func TestBoundaryContractSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := testkit.OrderBody("pm_card_visa", shopSKU, "1")
	for _, body := range []string{
		strings.Replace(order, `"DE"`, `"ZZ"`, 1), strings.Replace(order, `"DE"`, `"XK"`, 1), strings.Replace(order, `"DE"`, `"YU"`, 1),
		strings.Replace(order, `"Berlin"`, `"\u3000"`, 1), strings.Replace(order, `"EUR"`, `"AAA"`, 1),
	} {
		requireRefused(t, place(s.alice, "k", body), http.StatusBadRequest, "validation_failed")
	}
	requireRefused(t, s.adjusting(shopSKU, 0), http.StatusBadRequest, "validation_failed")
	requireRefused(t, s.adjusting(shopSKU, "-0"), http.StatusBadRequest, "validation_failed")
	s.adjust(shopSKU, -1)
	requirePlaced(t, place(s.alice, "k", strings.Replace(order, `"Berlin"`, `"\u3000x"`, 1)))
}

// Ensure a tag passes on its own resource alone, as it is read, written and replayed.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
func TestBoundaryTagsPassOnTheirResourceAlone(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	first, second := s.place("pm_card_visa"), s.place("pm_card_visa")
	tags := map[string]string{}
	for _, path := range []string{"/v1/orders/" + first, "/v1/orders/" + second, "/v1/orders/" + first + "/payment", "/v1/products/" + shopSKU} {
		tags[path] = s.alice.Get(path).Header.Get("ETag")
	}
	for path, own := range tags {
		for of, tag := range tags {
			if of == path {
				continue
			}
			require.NotEqual(t, own, tag)
			requireRefused(t, s.alice.Get(path, "If-Match", tag), http.StatusPreconditionFailed, "precondition_failed")
			requireStatus(t, http.StatusOK, s.alice.Get(path, "If-None-Match", tag))
			if path == "/v1/orders/"+first {
				for _, m := range []move{redirect("2 Low Street"), shipment("JD01"), cancellation("not mine")} {
					requireRefused(t, m.send(s, first, tag), http.StatusConflict, "version_conflict")
				}
			}
			if path == "/v1/products/"+shopSKU {
				requireRefused(t, s.edit(shopSKU, tag, 100), http.StatusConflict, "version_conflict")
			}
		}
		requireStatus(t, http.StatusOK, s.alice.Get(path, "If-Match", own))
	}
	requireStatus(t, http.StatusOK, redirect("2 Low Street").send(s, first, tags["/v1/orders/"+first]))
}

// Ensure a HEAD tells what its GET would, for every read, the pages and the stock included.
func TestBoundaryEveryReadAnswersHead(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	contract, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	for path, item := range contract.Paths.Map() {
		if item.Get == nil {
			continue
		}
		path = strings.NewReplacer("{order_id}", order, "{sku}", shopSKU).Replace(path)
		get, head := s.alice.Get(path), s.alice.Do(http.MethodHead, path, "")
		requireStatus(t, http.StatusOK, get)
		requireStatus(t, http.StatusOK, head)
		require.Empty(t, head.Body)
		for _, h := range []http.Header{get.Header, head.Header} {
			h.Del("Request-Id")
			h.Del("Date")
			h.Del("Content-Length")
		}
		require.Equal(t, get.Header, head.Header, path)
	}
}

// Ensure an order that commits late appears behind a newer one that was already listed, and that a client which reads with
// the overlap that the contract states finds it.
func TestBoundaryAnOrderThatCommitsLateIsFoundByOverlap(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.Product(t, "SLOW-001", 100, 10)
	seen := s.place("pm_card_visa")
	// A key of the same name, in a transaction that has not ended, holds the order up when it has its id already.
	held := s.Begin(t).Exec(claimOfAnother)
	start, late := later(func() testkit.Answer {
		return place(s.alice, "k", testkit.OrderBody("pm_card_visa", "SLOW-001", "1"))
	})
	start()
	s.AwaitBlockedOn(t, "INTO idempotency_keys")
	newest := s.place("pm_card_visa")
	list := func() []string { return walk(t, s.alice, "/v1/orders", func() {}, "limit", "1") }
	require.Equal(t, []string{newest, seen}, list())
	held.Rollback()
	answer := late()
	requirePlaced(t, answer)
	require.Equal(t, []string{newest, answer.Text("id"), seen}, list())
}
