package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// Ensure a process whose clock is wrong can neither take a live key nor make one that has expired already: a key expires by
// the database's clock, and the use cases have no other. What they store and compare is Tx.Now.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
func TestIdempotencyAWrongClockTakesNoLiveKey(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"../app", "../domain"} {
		files, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			code, err := os.ReadFile(name)
			require.NoError(t, err)
			require.False(t, strings.Contains(string(code), "time.Now(") || strings.Contains(string(code), "time.Since("),
				"%s asks the clock of this machine", name)
		}
	}
	s := testkit.Start(t)
	s.Product(t, shopSKU, 1000, 10)
	s.As(t, "alice").Place("k", testkit.OrderBody("pm_card_visa", shopSKU, "2"))
	require.Zero(t, purgeKeys(t, s), "a live key was purged")
	require.Equal(t, 1, s.Count(t, `idempotency_keys WHERE operation = 'place-order'
		AND expires_at BETWEEN now() + interval '71 hours' AND now() + interval '73 hours'`))
}
