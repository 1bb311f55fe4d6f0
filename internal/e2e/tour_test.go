package e2e

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/scenario"
	"example.com/orders/internal/dev/stack"
	"example.com/orders/internal/dev/testkit"
)

// Ensure the tour of make demo, which tells every scenario of the lab, holds on a service whose worker is a process of its own.
func TestTour(t *testing.T) {
	t.Parallel()
	service, stop, err := stack.Throwaway(t.Context(), stack.ThrowawayOptions{
		DatabaseURL: pgtest.Database(t, pgtest.Migrator("empty", func(context.Context, *sql.DB) error { return nil })),
		Worker:      []string{testkit.Binary(t, "dev"), "worker"},
	})
	t.Cleanup(func() { require.NoError(t, stop()) })
	require.NoError(t, err)
	told := scenario.Tour(t.Context(), service, silent{}, func(int, string, string) {})
	require.NoError(t, t.Context().Err())
	for _, chapter := range told {
		require.NotEmpty(t, chapter.Checks, chapter.Title)
		for _, c := range chapter.Checks {
			require.True(t, c.OK, "%s: %s: %s", chapter.Title, c.Text, c.Why)
		}
	}
}

// silent hears a tour and says nothing.
type silent struct{}

func (silent) Say(string, string)         {}
func (silent) Check(scenario.Check)       {}
func (silent) Exchange(scenario.Exchange) {}
func (silent) Crowd([]scenario.Exchange)  {}
