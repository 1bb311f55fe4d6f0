package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"example.com/orders/internal/dev/testkit"
)

// record is what a use-case record says of keys. The tests beside the records compare the rest of it.
type record struct {
	Operation   string
	Idempotency struct {
		Mode   string
		Stored []struct {
			Status  int
			Headers []string
		}
	}
}

func records(t *testing.T) map[string]record {
	t.Helper()
	paths, err := filepath.Glob("../../docs/usecases/*.yaml")
	require.NoError(t, err)
	all := map[string]record{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var r record
		require.NoError(t, yaml.Unmarshal(raw, &r))
		all[r.Operation] = r
	}
	return all
}

// Ensure what the store holds of every keyed operation is what its record lists: the status, those headers and no
// other; and that a replay answers with them, and with nothing beside them but what is made for the exchange.
//
// Standard: litespec/ext/concurrency#declare-replayed-transport-outcomes
func TestRecordsStateTheStoredAnswers(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.StartWorker(t)
	for _, r := range s.requests(func(o testkit.Operation) bool { return o.Keyed }) {
		tag := r.tag(t, s.alice)
		send := func() testkit.Answer { return r.send(s.alice, "recorded", "If-Match", tag) }
		requireRecorded(t, s, records(t)[r.ID], send(), send())
		s.book(r)
	}
}

func requireRecorded(t *testing.T, s shop, r record, first, again testkit.Answer) {
	t.Helper()
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), "%s: %s", r.Operation, again.Body)
	require.Equal(t, first.Status, again.Status)
	require.Equal(t, first.Body, again.Body)

	require.Len(t, r.Idempotency.Stored, 1, r.Operation)
	listed := r.Idempotency.Stored[0]
	status, names := storedHeaders(s, r.Operation)
	require.Equal(t, listed.Status, status, r.Operation)
	require.ElementsMatch(t, listed.Headers, names, "%s: the headers in the store", r.Operation)

	allowed := []string{"Content-Length", "Date", "Idempotent-Replayed", "Request-Id"}
	for _, name := range listed.Headers {
		require.Equal(t, first.Header.Values(name), again.Header.Values(name), "%s: %s", r.Operation, name)
		allowed = append(allowed, http.CanonicalHeaderKey(name))
	}
	for name := range again.Header {
		require.Contains(t, allowed, name, "%s: a header of the replay", r.Operation)
	}
}

// storedHeaders reads the status and the names of the headers that the store holds under the key of requireRecorded.
func storedHeaders(s shop, operation string) (status int, names []string) {
	s.t.Helper()
	var raw []byte
	require.NoError(s.t, s.DB.QueryRow(s.t.Context(), `
		SELECT response_status, response_headers FROM idempotency_keys WHERE operation = $1 AND key = 'recorded'`,
		operation).Scan(&status, &raw))
	var members map[string]string
	require.NoError(s.t, json.Unmarshal(raw, &members))
	onTheWire := map[string]string{"content_type": "Content-Type", "etag": "ETag", "location": "Location"}
	for member := range members {
		require.Contains(s.t, onTheWire, member, "%s stores it", operation)
		names = append(names, onTheWire[member])
	}
	slices.Sort(names)
	return status, names
}
