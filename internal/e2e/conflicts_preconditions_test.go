package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure every versioned operation asks for the version, refuses a stale, a weak and a foreign one with 409
// version_conflict, refuses what is no tag, takes a list of which one matches, and hands out the new tag.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
// Standard: litespec/ext/concurrency#return-precondition-outcomes
// Standard: litespec/ext/concurrency#map-failed-expected-versions
func TestConflictVersionedOperationsHoldTheCallerToItsVersion(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	for _, op := range s.requests(func(o testkit.Operation) bool { return o.Versioned }) {
		before := s.alice.Get(op.resource)
		request := func(tags ...string) testkit.Answer {
			var headers []string
			for _, tag := range tags {
				headers = append(headers, "If-Match", tag)
			}
			return op.send(s.alice, uuid.NewString(), headers...)
		}
		tag := before.Header.Get("ETag")
		for _, c := range []struct {
			lines  []string
			status int
			code   string
		}{
			{nil, http.StatusPreconditionRequired, "precondition_required"},
			{[]string{"*"}, http.StatusPreconditionRequired, "precondition_required"},
			{[]string{strings.Trim(tag, `"`)}, http.StatusBadRequest, "invalid_precondition"},
			{[]string{tag, `"unbalanced`}, http.StatusBadRequest, "invalid_precondition"},
			{[]string{`"stale"`}, http.StatusConflict, "version_conflict"},
			{[]string{`""`}, http.StatusConflict, "version_conflict"},
			{[]string{"W/" + tag}, http.StatusConflict, "version_conflict"},
			{[]string{`"a", W/` + tag, `"b"`}, http.StatusConflict, "version_conflict"},
			{[]string{strings.ToLower(tag[:len(tag)-1]) + `x"`}, http.StatusConflict, "version_conflict"},
		} {
			name := fmt.Sprintf("%s with %q", op.ID, c.lines)
			a := request(c.lines...)
			require.Equal(t, c.status, a.Status, "%s: %s", name, a.Body)
			require.Equal(t, c.code, a.Code(), name)
			require.Empty(t, a.Header.Get("ETag"), "%s: a refusal shows a version", name)
		}
		require.Equal(t, before.Body, s.alice.Get(op.resource).Body, "%s: a refused request changed something", op.ID)

		accepted := request(`"other"`, `W/`+tag+`, `+tag)
		requireStatus(t, http.StatusOK, accepted)
		after := s.alice.Get(op.resource).Header.Get("ETag")
		require.Equal(t, after, accepted.Header.Get("ETag"), op.ID)
		require.NotEqual(t, tag, after, op.ID)
		requireRefused(t, request(tag), http.StatusConflict, "version_conflict")
	}
}

// Ensure operations whose contention is absorbed neither ask for a version nor look at one.
//
// Standard: litespec/ext/concurrency#limit-version-checks
func TestConflictAbsorbedOperationsTakeNoVersion(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	order := s.placePaid("pm_card_visa")
	for _, headers := range [][]string{nil, {"If-Match", `"stale"`}, {"If-Match", "*"}, {"If-Match", "no tag", "If-None-Match", "none"}} {
		key := uuid.NewString()
		placed := post(s.alice, "/v1/orders", key, testkit.OrderBody("pm_card_visa", shopSKU, "1"), headers...)
		requireStatus(t, http.StatusCreated, placed)
		adjusted := post(s.alice, "/v1/products/"+shopSKU+"/stock-adjustments", key, `{"delta":1}`, headers...)
		requireStatus(t, http.StatusOK, adjusted)
		s.Stocked(t, "default", shopSKU, 1)
		refunded := post(s.alice, "/v1/orders/"+order+"/refunds", key, `{"amount":{"amount":1,"currency":"EUR"}}`, headers...)
		requireStatus(t, http.StatusAccepted, refunded)
		require.Empty(t, refunded.Header.Get("ETag"))
		require.Empty(t, adjusted.Header.Get("ETag"))
	}
}

// Ensure a tag changes exactly when the stored version does, is the same for GET, HEAD and 304, and is the only place
// where a version shows.
//
// Standard: litespec/ext/concurrency#apply-http-version-preconditions
// Standard: litespec/ext/concurrency#hide-provider-version-values
func TestConflictTagsFollowTheStoredVersion(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	path := "/v1/orders/" + order
	tags := map[string]map[int64]string{}
	see := func(step string) {
		t.Helper()
		for path, version := range map[string]int64{
			path: s.version("orders", "id", order), path + "/payment": s.version("payments", "order_id", order),
			"/v1/products/" + shopSKU: s.version("products", "sku", shopSKU),
		} {
			tag := s.requireOneTag(path)
			if tags[path] == nil {
				tags[path] = map[int64]string{}
			}
			for v, seen := range tags[path] {
				require.Equal(t, v == version, seen == tag, "%s: %s has tag %s at version %d, and %s at %d", step, path, tag, version, seen, v)
			}
			tags[path][version] = tag
		}
	}
	see("placed")
	s.StartWorker(t)
	s.alice.PaymentStatus(order, "succeeded")
	see("paid")
	requireStatus(t, http.StatusOK, redirect("2 Low Street").send(s, order, s.order(order).Header.Get("ETag")))
	see("redirected")
	requireStatus(t, http.StatusOK, redirect("2 Low Street").send(s, order, s.order(order).Header.Get("ETag")))
	see("redirected to the same place")
	requireStatus(t, http.StatusAccepted, s.refund(order, "r1", 100))
	s.jobDone("refund-charge", order)
	see("refunded")
	requireStatus(t, http.StatusOK, s.edit(shopSKU, s.product(shopSKU).Header.Get("ETag"), 100))
	see("edited")
	s.adjust(shopSKU, 1)
	see("adjusted")
	requireStatus(t, http.StatusOK, shipment("JD01").send(s, order, s.order(order).Header.Get("ETag")))
	see("shipped")
	require.Len(t, tags[path], 4)
	require.Len(t, tags["/v1/products/"+shopSKU], 2)
}

// requireOneTag reads a resource in every way and returns its strong tag.
func (s shop) requireOneTag(path string) string {
	s.t.Helper()
	get := s.alice.Get(path)
	requireStatus(s.t, http.StatusOK, get)
	tag := get.Header.Get("ETag")
	require.Regexp(s.t, `^"[!#-~]+"$`, tag)
	require.Len(s.t, get.Header.Values("ETag"), 1)
	require.NotContains(s.t, string(get.Body), strings.Trim(tag, `"`), "the body shows the version, too")
	head := s.alice.Do(http.MethodHead, path, "")
	require.Equal(s.t, []string{tag}, head.Header.Values("ETag"))
	same := s.alice.Get(path, "If-None-Match", tag)
	requireStatus(s.t, http.StatusNotModified, same)
	require.Equal(s.t, []string{tag}, same.Header.Values("ETag"))
	for name := range get.Header {
		require.NotContains(s.t, strings.ToLower(name), "version")
	}
	return tag
}

// Ensure the retry of one's own accepted cancellation gets its result although its version is stale by then, that the
// same key with another version is another request, and that another key with the stale version is refused.
//
// Standard: litespec/ext/concurrency#replay-completed-results
// Standard: litespec/ext/concurrency#reject-conflicting-key-reuse
func TestConflictCancellationLooksAtItsKeyBeforeItsVersion(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	cancel := func(key, body string, tags ...string) testkit.Answer {
		return post(s.alice, "/v1/orders/"+order+"/cancellation", key, body, "If-Match", strings.Join(tags, ", "))
	}
	stale := s.order(order).Header.Get("ETag")
	requireRefused(t, cancel("k1", `{}`, `"stale"`), http.StatusConflict, "version_conflict")
	first := cancel("k1", `{}`, stale) // a refusal has left the key free
	requireStatus(t, http.StatusOK, first)
	now := first.Header.Get("ETag")
	require.NotEqual(t, stale, now)

	requireReplay(t, first, cancel("k1", `{}`, stale))
	requireReplay(t, first, cancel("k1", `{"reason":""}`, stale, stale)) // the same versions, and no reason in other words
	requireRefused(t, cancel("k1", `{}`, now), http.StatusUnprocessableEntity, "idempotency_key_reused")
	requireRefused(t, cancel("k1", `{}`, stale, now), http.StatusUnprocessableEntity, "idempotency_key_reused")
	requireRefused(t, cancel("k1", `{"reason":"x"}`, stale), http.StatusUnprocessableEntity, "idempotency_key_reused")
	requireRefused(t, cancel("k1", `{}`, "*"), http.StatusPreconditionRequired, "precondition_required")
	requireRefused(t, cancel("k2", `{}`, stale), http.StatusConflict, "version_conflict")
	requireRefused(t, cancel("k2", `{}`, now), http.StatusConflict, "order_not_cancellable")
	require.EqualValues(t, 2, s.version("orders", "id", order))
	require.EqualValues(t, shopStock, s.OnHand(t, shopSKU))
}

// Ensure a save that meets another version than it had loaded writes nothing, and that the request is compared anew: a
// writer that does not lock, which the test plays, cannot overwrite an accepted change.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestConflictStaleSaveIsComparedAnew(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	order := s.place("pm_card_visa")
	s.exec(`CREATE SEQUENCE test_saves`)
	s.exec(`CREATE FUNCTION test_skip() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF nextval(''test_saves'') = 1 THEN RETURN NULL; END IF; RETURN NEW; END'`)
	s.exec(`CREATE TRIGGER test_skip BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION test_skip()`)
	moved := redirect("2 Low Street")
	requireStatus(t, http.StatusOK, moved.send(s, order, s.order(order).Header.Get("ETag")))
	require.True(t, moved.stored(s.order(order)))
	require.EqualValues(t, 2, queryValue[int64](s, `SELECT last_value FROM test_saves`), "the first save met no row")
	require.EqualValues(t, 2, s.version("orders", "id", order))
}
