package postgres

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/infra/config"
)

// Open makes the pool and waits until the database answers, for at most the configured time. application names the
// process in pg_stat_activity. traces makes a span for each statement; nil: no spans.
func Open(
	ctx context.Context, c config.Database, application string, traces trace.TracerProvider,
) (*pgxpool.Pool, error) {
	settings, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be parsed", c.Variable) // the error would quote the password
	}
	settings.MaxConns = int32(c.MaxConns)       //nolint:gosec // G115: at most 1000
	settings.MaxConnLifetime = 30 * time.Minute // so that a pool follows a failover or a resized cluster
	settings.MaxConnLifetimeJitter = 5 * time.Minute
	settings.ConnConfig.ConnectTimeout = c.AcquireTimeout
	settings.ConnConfig.OnPgError = keep
	settings.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap()) // pgx alone takes an id for a text, which it writes and reads back
		return nil
	}
	if traces != nil {
		settings.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(traces))
	}
	maps.Copy(settings.ConnConfig.RuntimeParams, map[string]string{"application_name": application, "timezone": "UTC"})
	if c.Pooled {
		shareConnections(settings.ConnConfig)
	} else {
		maps.Copy(settings.ConnConfig.RuntimeParams, limits(c))
	}
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	if err := await(ctx, pool, c.ConnectTimeout); err != nil {
		pool.Close()
		return nil, fmt.Errorf("%s: %w", c.Variable, err)
	}
	return pool, nil
}

// await pings until the database answers.
func await(ctx context.Context, pool *pgxpool.Pool, limit time.Duration) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := pool.Ping(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, Jitter(wait)) != nil {
			return fmt.Errorf("no answer from the database within %s: %s",
				time.Since(began).Round(100*time.Millisecond), strings.Join(strings.Fields(err.Error()), " "))
		}
	}
}

// Writable reports whether the server accepts writes: it is neither a standby nor set to read-only. If it does not, the
// pool's connections are replaced, because a session keeps the read-only default from its start.
func Writable(ctx context.Context, pool *pgxpool.Pool) (writable bool, err error) {
	err = pool.QueryRow(ctx, `SELECT current_setting('transaction_read_only') = 'off'`).Scan(&writable)
	if err != nil {
		return false, fmt.Errorf("ask whether the database takes writes: %w", err)
	}
	if !writable {
		pool.Reset()
	}
	return writable, nil
}

// keep reports whether a connection can be reused after an error. A server that refuses to write has become a standby:
// the connection goes, whichever request used it, and the next one finds the new primary (behind the same name, or
// among the hosts of a URL with target_session_attrs=read-write). A fatal error ends a connection anyway.
func keep(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	return e.SeverityUnlocalized != "FATAL" && e.Code != readOnlyTransaction
}
