package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"example.com/orders/internal/infra/config"
)

// Open makes the pool and waits until the database answers, for at most the configured time. application names the
// process in pg_stat_activity.
func Open(
	ctx context.Context, c config.Database, application string, traces trace.TracerProvider,
) (*pgxpool.Pool, error) {
	settings, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL cannot be parsed") // the error would quote the password
	}
	settings.MaxConns = int32(c.MaxConns)
	settings.MaxConnLifetime = 30 * time.Minute // so that a pool follows a failover or a resized cluster
	settings.MaxConnLifetimeJitter = 5 * time.Minute
	settings.ConnConfig.ConnectTimeout = c.AcquireTimeout
	settings.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(traces), otelpgx.WithTrimSQLInSpanName())
	for name, value := range map[string]string{
		"application_name":                    application,
		"timezone":                            "UTC",
		"lock_timeout":                        milliseconds(c.LockTimeout),
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleTxTimeout),
	} {
		settings.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	if err := await(ctx, pool, c.ConnectTimeout); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// await pings until the database answers.
func await(ctx context.Context, pool *pgxpool.Pool, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := pool.Ping(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx, jitter(wait)) != nil {
			return fmt.Errorf("DATABASE_URL: no answer from the database within %s: %w", limit, err)
		}
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
