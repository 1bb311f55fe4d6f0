//go:build exercise

package exercise

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const placed = `{"lines":[{"sku":"TEA-001","quantity":2},{"sku":"MUG-001","quantity":1}],"currency":"EUR"}`

// Ensure a retry gets the answer however it is written, and another request under the key is refused.
func TestOnlyARetryIsAnswered(t *testing.T) {
	t.Parallel()
	print, err := Fingerprint([]byte(placed))
	require.NoError(t, err)
	stored := Stored{print, "order 1"}
	for name, c := range map[string]struct {
		body string
		same bool
	}{
		"the same bytes":    {placed, true},
		"white space":       {`{"lines": [{"sku":"TEA-001","quantity":2}, {"sku":"MUG-001","quantity":1}], "currency":"EUR"}`, true},
		"reordered members": {`{"currency":"EUR","lines":[{"quantity":2,"sku":"TEA-001"},{"quantity":1,"sku":"MUG-001"}]}`, true},
		"an escape":         {`{"lines":[{"sku":"\u0054EA-001","quantity":2},{"sku":"MUG-001","quantity":1}],"currency":"EUR"}`, true},
		"reordered lines":   {`{"lines":[{"sku":"MUG-001","quantity":1},{"sku":"TEA-001","quantity":2}],"currency":"EUR"}`, false},
		"another quantity":  {`{"lines":[{"sku":"TEA-001","quantity":3},{"sku":"MUG-001","quantity":1}],"currency":"EUR"}`, false},
		"one member less":   {`{"lines":[{"sku":"TEA-001","quantity":2},{"sku":"MUG-001","quantity":1}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := Replay(stored, []byte(c.body))
			if !c.same {
				require.ErrorIs(t, err, ErrKeyReused)
				require.Empty(t, answer)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "order 1", answer)
		})
	}
}

// Ensure large amounts are not rounded: these two are equal as a float64.
func TestAmountsAreNotRounded(t *testing.T) {
	t.Parallel()
	one, err := Fingerprint([]byte(`{"amount":9007199254740992}`))
	require.NoError(t, err)
	other, err := Fingerprint([]byte(`{"amount":9007199254740993}`))
	require.NoError(t, err)
	require.NotEqual(t, one, other)
}

// Ensure what is no JSON has no fingerprint.
func TestWhatIsNoJSONIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Fingerprint([]byte(`{"amount":`))
	require.Error(t, err)
}
