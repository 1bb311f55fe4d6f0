package pgtest

import (
	"context"
	"errors"
	"os"
	"sync"

	"example.com/orders/internal/dev/postgres"
)

// shared belongs to the package because nothing else lives as long: a test is handed its testing.TB only, and the
// server has to outlast each one of them.
var shared harness

// harness is the server that the tests of one binary share.
type harness struct {
	once   sync.Once
	url    string
	server *postgres.Server // nil for a server that is not ours
	err    error
}

// address is the superuser's. The first call starts the server.
func (h *harness) address() (string, error) {
	h.once.Do(h.start)
	return h.url, h.err
}

func (h *harness) start() {
	if h.url = os.Getenv("TEST_DATABASE_URL"); h.url != "" {
		return
	}
	// Not a test's context: the server is for the tests after it, too.
	h.server, h.err = postgres.Start(context.Background(), postgres.Options{
		MaxConnections: maxConnections,
		Log:            os.Stderr,
	})
	if h.err == nil {
		h.url = h.server.URL("postgres")
	}
}

func (h *harness) stop() error {
	h.once.Do(func() { h.err = errors.New("the tests are over") })
	if h.server == nil {
		return nil
	}
	return h.server.Stop()
}
