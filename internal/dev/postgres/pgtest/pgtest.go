// Package pgtest gives every test a migrated PostgreSQL database of its own.
//
// One server serves all tests of a test binary. It starts with the first test that asks for a database and ends with
// the test process, whichever way that ends. TEST_DATABASE_URL, the address of a superuser, makes the tests use a
// server that already runs.
package pgtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/peterldowns/pgtestdb"

	"example.com/orders/internal/dev/postgres"
)

// maxConnections leaves room for parallel tests with a pool each.
const maxConnections = 300

// Main runs the tests of a package and then stops the server in good order. It is to be called by TestMain; without it
// the server ends a moment after the test process. What else is to be cleaned up after the last test is passed along.
func Main(m *testing.M, after ...func() error) {
	code := m.Run()
	for _, clean := range append(after, stop) {
		if err := clean(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Database makes a database for this test alone, a copy of a template that the migrator has prepared once, and returns
// its address. The user in it owns the database but is no superuser. The database is dropped when the test has passed
// and stays until the server's end when it has failed.
func Database(t testing.TB, m pgtestdb.Migrator) string {
	t.Helper()
	admin, err := address()
	if err != nil {
		t.Fatalf("server for the tests: %v", err)
	}
	return create(t, admin, m)
}

// Server starts a server for this test alone, to be killed and restarted at will. What was committed survives Kill.
func Server(t testing.TB) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context(), postgres.Options{
		MaxConnections: maxConnections,
		// Enough for Kill, which spares the operating system and its cache.
		Settings: map[string]string{"synchronous_commit": "on"},
	})
	if err != nil {
		t.Fatalf("server for this test: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("server of this test: %v", err)
		}
	})
	return s
}

// DatabaseOn is Database on a server of the test's own. The database stays until that server ends.
func DatabaseOn(t testing.TB, s *postgres.Server, m pgtestdb.Migrator) string {
	t.Helper()
	return create(keep{t}, s.URL("postgres"), m)
}

// keep ignores clean-ups: the server may be down by then, and its databases go with it.
type keep struct{ testing.TB }

func (keep) Cleanup(func()) {}
