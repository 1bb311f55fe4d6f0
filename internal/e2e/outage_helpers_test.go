package e2e

import (
	"testing"

	"example.com/orders/internal/dev/testkit"
)

// openShopBehind is openShop with a link between the service and its database.
func openShopBehind(t *testing.T, env ...string) (shop, *testkit.Proxy) {
	t.Helper()
	s := openShop(t, env...)
	s.StopAPI(t)
	n := testkit.StartProxy(t, s.DatabaseURL)
	s.Env["DATABASE_URL"] = n.URL
	s.StartAPI(t)
	s.alice = s.As(t, "alice")
	return s, n
}

// requireNoLeak waits until a part of the service has given all its connections back.
func requireNoLeak(t *testing.T, s *testkit.Service, part string) {
	t.Helper()
	testkit.Eventually(t, "all connections given back", func() bool {
		return scrape(t, s.Metrics[part]).Value("orders_db_connections", "state", "used") == 0
	})
}
