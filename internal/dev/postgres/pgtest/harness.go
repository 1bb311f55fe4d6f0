package pgtest

import (
	"context"
	"os"
	"sync"

	"example.com/orders/internal/dev/postgres"
)

// The server that the tests of one binary share belongs to the package because nothing else lives as long: a test is handed
// its testing.TB only, and the server has to outlast each one of them.
var (
	shared *postgres.Server // nil until a test asks for its address, and for a server that is not ours

	// address is the superuser's. The first call starts the server.
	address = sync.OnceValues(func() (url string, err error) {
		url, shared, err = start()
		return url, err
	})
)

func start() (url string, s *postgres.Server, err error) {
	if url = os.Getenv("TEST_DATABASE_URL"); url != "" {
		return url, nil, nil
	}
	// Not a test's context: the server is for the tests after it, too.
	s, err = postgres.Start(context.Background(), postgres.Options{MaxConnections: maxConnections, Log: os.Stderr})
	if err != nil {
		return "", nil, err
	}
	return s.URL("postgres"), s, nil
}

func stop() error {
	if shared == nil {
		return nil
	}
	return shared.Stop()
}
