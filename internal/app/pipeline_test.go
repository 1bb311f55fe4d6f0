package app

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure a use case that forgets to state its target is refused before its transaction: without a target nothing would
// ask whose order it works on.
func TestACommandWithoutATargetIsRefused(t *testing.T) {
	t.Parallel()
	c := Command[int]{
		UseCase: UseCasePlaceOrder,
		Actor:   someone,
		Handle:  func(context.Context, Tx) (int, error) { panic("handled") },
	}
	_, err := run(t.Context(), &Service{}, c)
	require.EqualError(t, err, "use case place-order states no target")
	_, err = runKeyed(t.Context(), &Service{}, c)
	require.EqualError(t, err, "use case place-order states no target")
}
