//go:build exercise

package exercise

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	steps = 12 // more than one run of the worker has
	runs  = 4  // of the worker, after the last of which all must be settled
)

// Ensure that a cancelled order costs nothing and that every other order is paid once, wherever the cancellation strikes and
// whichever answer is lost.
func TestEverySchedule(t *testing.T) {
	t.Parallel()
	for strikes := range steps + 1 { // 0: nobody cancels
		for lost := range steps {
			t.Run(fmt.Sprintf("cancelled at step %d, answer %d lost", strikes, lost), func(t *testing.T) {
				t.Parallel()
				play(t, strikes, lost)
			})
		}
	}
}

func play(t *testing.T, strikes, lost int) {
	t.Helper()
	d, p, step := &Database{}, &Provider{lose: lost}, 0
	between := func() {
		step++
		if step == strikes {
			d.between = nil // the cancellation has no cancellation in it
			Cancel(d)
			d.between = p.between
		}
	}
	d.between, p.between = between, between
	for range runs {
		_ = Work(d, p) // an error: it is run again
	}
	d.between, p.between = nil, nil
	if strikes > step { // after all: there is one more run for it
		Cancel(d)
		_ = Work(d, p)
		_ = Work(d, p)
	}
	o := d.Load()
	require.Equal(t, strikes > 0, o.Cancelled)
	require.NotEmpty(t, o.Payment, "the payment is open for ever: %+v, %+v", o, p)
	require.NotEqual(t, Unconfirmed, p.Intent, "the intent can still be confirmed: %+v, %+v", o, p)
	require.Equal(t, p.Intent == Succeeded, o.Payment == Succeeded, "the payment shows what the provider has: %+v, %+v", o, p)
	require.Equal(t, p.Refunded, o.Refunded, "%+v, %+v", o, p)
	require.LessOrEqual(t, p.Refunds, 1)
	require.Equal(t, !o.Cancelled, p.Intent == Succeeded && !p.Refunded, "the money is kept: %+v, %+v", o, p)
}
