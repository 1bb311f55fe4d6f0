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

// errReadOnly means that the server is a standby or is set to read-only.
var errReadOnly = errors.New("the database is read-only")

// readiness checks the database over a connection of its own. With a connection of the pool, a row lock that many
// requests wait for would make every replica unready at once, although other requests could still be served.
type readiness struct {
	pool, work *pgxpool.Pool
	writes     bool // whether the process needs writes: a worker does, an API can still serve reads
}

func openReadiness(ctx context.Context, c config.Database, application string, work *pgxpool.Pool, writes bool) (*readiness, error) {
	c.MaxConns = 1
	pool, err := postgres.Open(ctx, c, application+"-readyz", noop.NewTracerProvider()) // traces of health checks are noise
	if err != nil {
		return nil, err
	}
	return &readiness{pool, work, writes}, nil
}

// awaitDatabase waits, for at most limit, until the migrations that this binary needs have run and, if the process
// needs writes, until the database accepts writes.
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

// database checks that the database answers, has the schema that this binary needs and, if the process needs writes,
// accepts writes.
func (r *readiness) database(ctx context.Context) error {
	pending, err := migrations.Pending(ctx, r.pool)
	if postgres.Full(err) { // the server has no free connection: use one that the process already has
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
