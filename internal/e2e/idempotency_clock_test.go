package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/internal/pgtest"
	"example.com/orders/internal/testkit"
)

// Ensure a process whose clock is days off neither takes a live key nor makes one that has expired already: the expiry of
// keys has one clock, the database's.
//
// Standard: litespec/ext/concurrency#enforce-key-uniqueness
func TestIdempotencyAWrongClockTakesNoLiveKey(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t)
	s.Product(t, "TEA-001", 1999, 10)
	store := postgres.NewStore(pgtest.Pool(t, s.DatabaseURL), nil, postgres.Settings{
		KeyWait: testkit.Wait, LockTimeout: testkit.Wait, AcquireTimeout: testkit.Wait,
	}, s.Metrics["api"].Metrics, noop.NewTracerProvider())
	adjust := func(key string, off time.Duration) app.Outcome {
		service := app.New(store, nil, nil, app.Settings{KeyRetention: 72 * time.Hour}, func() time.Time {
			return time.Now().Add(off)
		})
		actor := app.Actor{Tenant: "default", ID: "alice", Scopes: []string{app.ScopeCatalogWrite}}
		outcome, err := service.AdjustStock(t.Context(), actor, app.Keyed[domain.StockState]{
			Key: key, Route: "POST", Render: func(domain.StockState) (app.Reply, error) {
				return app.Reply{Status: 200, Header: []byte("{}"), Body: []byte("{}")}, nil
			},
		}, app.AdjustStockInput{SKU: "TEA-001", Delta: 1})
		require.NoError(t, err)
		return outcome
	}
	const days = 80 * time.Hour // more than keys live
	for key, clocks := range map[string][2]time.Duration{"ahead": {0, days}, "behind": {-days, 0}} {
		require.False(t, adjust(key, clocks[0]).Replayed, key)
		require.True(t, adjust(key, clocks[1]).Replayed, "%s: a live key was taken", key)
	}
	s.Stocked(t, "default", "TEA-001", 2)
	require.Zero(t, purgeKeys(t, s), "a live key was purged")
	require.Equal(t, 2, s.Count(t, "idempotency_keys WHERE expires_at BETWEEN now() + interval '71 hours' AND now() + interval '73 hours'"))
}
