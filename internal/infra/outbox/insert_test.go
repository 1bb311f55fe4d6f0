package outbox

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/riverqueue/rivercontrib/otelriver"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, pgtest.Database(t, pgtest.Migrator(migrations.Digest(), migrations.UpDB)))
}

// Ensure the row that InsertSQL leaves is the one that River's own client leaves, but for its id and its times, with and
// without a trace. A version of River that inserts another row fails here.
func TestInsertedRowIsRivers(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=value")
	require.NoError(t, err)
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
	ref := Target{SchemaVersion, "default", uuid.New()}
	for name, ctx := range map[string]context.Context{"traced": traced, "untraced": t.Context()} {
		for _, args := range []river.JobArgs{
			ChargeOrderArgs{ref},
			RefundChargeArgs{ref, uuid.New()},
		} {
			t.Run(name+" "+args.Kind(), func(t *testing.T) {
				t.Parallel()
				pool := open(t)
				client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Plugins: otel()})
				require.NoError(t, err)
				require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					_, err := client.InsertTx(ctx, tx, args, &river.InsertOpts{MaxAttempts: MaxAttempts})
					return err
				}))
				values, err := InsertArgs(ctx, args)
				require.NoError(t, err)
				_, err = pool.Exec(ctx, InsertSQL, values...)
				require.NoError(t, err)
				rows := jobRows(t, pool)
				require.Len(t, rows, 2)
				require.Equal(t, rows[0], rows[1])
			})
		}
	}
}

// otel propagates traces and records none, so that no span of its own stands between the context and the job.
func otel() []rivertype.Plugin {
	return []rivertype.Plugin{otelriver.NewMiddleware(&otelriver.MiddlewareConfig{
		EnableTracePropagation: true, TracerProvider: noop.NewTracerProvider(),
	})}
}

// jobRows reads all jobs without their ids and times.
func jobRows(t *testing.T, pool *pgxpool.Pool) []map[string]any {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT * FROM river_job ORDER BY id`)
	all, err := pgx.CollectRows(rows, pgx.RowToMap)
	require.NoError(t, err)
	for _, row := range all {
		require.Subset(t, slices.Collect(maps.Keys(row)), []string{"id", "created_at", "scheduled_at"})
		delete(row, "id")
		delete(row, "created_at")
		delete(row, "scheduled_at")
	}
	return all
}
