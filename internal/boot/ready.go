package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/migrations"
)

var errPending = errors.New("migrations are pending: run `migrate up`")

// errReadOnly is of a server that has become a standby, or was told to take no writes.
var errReadOnly = errors.New("the database is read-only")

// readiness asks the database over a connection of its own. With one of the pool's, a row that many requests wait for
// would make every replica unready at once, although all other requests could be served.
type readiness struct {
	pool, work *pgxpool.Pool
	writes     bool // whether there is nothing to do without writes, as for a worker; an API's reads go on
}

func openReadiness(ctx context.Context, c config.Database, application string, work *pgxpool.Pool, writes bool) (*readiness, error) {
	c.MaxConns = 1
	pool, err := postgres.Open(ctx, c, application+"-readyz", noop.NewTracerProvider()) // a trace of each would be noise
	if err != nil {
		return nil, err
	}
	return &readiness{pool, work, writes}, nil
}

// awaitDatabase waits, for at most limit, until the migrations that this binary needs have run, as they may be running
// now, and until a database that it writes to takes writes.
func (r *readiness) awaitDatabase(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last error
	for {
		err := r.database(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", limit, last)
		}
	}
}

// database asks for an answering database with the schema that this binary was made for and, where the process needs
// them, with writes.
func (r *readiness) database(ctx context.Context) error {
	pending, err := migrations.Pending(ctx, r.pool)
	if postgres.Full(err) { // where others have taken its place, what counts is whether requests are served
		pending, err = migrations.Pending(ctx, r.work)
	}
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if pending {
		return errPending
	}
	if !r.writes {
		return nil
	}
	writable, err := postgres.Writable(ctx, r.pool)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if !writable {
		return errReadOnly
	}
	return nil
}
