//go:build exercise

package exercise

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure an order is charged once and shown as paid, whichever answer is lost, and whether the job runs again at once or when
// the provider has forgotten its keys.
func TestAnOrderIsChargedOnce(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{0, 1, 2} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("answer %d lost, a day later: %t", lost, later), func(t *testing.T) {
				t.Parallel()
				d, p := &Database{Order{ID: "o1"}}, NewProvider(lost)
				err := Charge(d, p)
				require.Equal(t, lost > 0, err != nil, "the first run: %v", err)
				for range 2 {
					if later {
						p.Forget()
					}
					require.NoError(t, Charge(d, p))
				}
				require.True(t, d.Load().Paid)
				require.Equal(t, 1, p.Charges())
			})
		}
	}
}
