package migrations

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres/pgtest"
)

// Ensure every migration can be undone, River's included, and that what comes back afterwards is the same.
func TestDownLeavesNothingAndUpComesBack(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))
	before := texts(t, pool, relations)
	require.Contains(t, before, "river_job")

	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	p, err := provider(db)
	require.NoError(t, err)
	_, err = p.DownTo(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"goose_db_version", "goose_db_version_id_seq"}, texts(t, pool, relations))
	requirePending(t, pool, true)

	require.NoError(t, Up(t.Context(), pool))
	require.Equal(t, before, texts(t, pool, relations))
	requirePending(t, pool, false)
}

// Ensure the River of go.mod finds the schema that it needs: one that needs more fails here, and asks for a further
// migration.
func TestRiverFindsItsSchema(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	require.NoError(t, err)
	result, err := m.Validate(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, result.OK, "%v", result.Messages)
	all := m.AllVersions()
	require.Equal(t, riverVersion, all[len(all)-1].Version)
}

// Ensure a second Up finds nothing to do, and that a migration of a newer release does not make this one unready: an
// old binary goes on working beside it.
func TestANewerSchemaIsNotPending(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	requirePending(t, pool, true)
	require.Empty(t, texts(t, pool, relations), "looking at an empty database has made something")
	require.NoError(t, Up(t.Context(), pool))
	require.NoError(t, Up(t.Context(), pool))
	requirePending(t, pool, false)
	_, err := pool.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	require.NoError(t, err)
	requirePending(t, pool, false)
	_, err = pool.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id = 4`)
	require.NoError(t, err)
	requirePending(t, pool, true)
}

// Ensure the status names every migration and when it was applied.
func TestStatusListsEveryMigration(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))
	list, err := Status(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, list, len(texts(t, pool, `SELECT version_id::text FROM goose_db_version WHERE version_id > 0`)))
	for i, s := range list {
		require.True(t, i == 0 || s.Version > list[i-1].Version, "in the order of their versions")
		require.NotEmpty(t, s.Name)
		require.WithinDuration(t, time.Now(), s.Applied, time.Hour)
	}
}

func requirePending(t testing.TB, pool *pgxpool.Pool, want bool) {
	t.Helper()
	pending, err := Pending(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, want, pending)
}

// Ensure a process that was killed while it built an index, which leaves an invalid one behind, does not keep the next from
// building it.
func TestAKilledIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	p, err := provider(db)
	require.NoError(t, err)
	_, err = p.UpTo(t.Context(), 4) // all before the index, whatever comes after it
	require.NoError(t, err)
	valid := `SELECT indisvalid::text FROM pg_index WHERE indexrelid = to_regclass('products_tenant_id_sku_bytes_idx')`

	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	t.Cleanup(func() { _ = old.Rollback(context.WithoutCancel(t.Context())) })
	_, err = old.Exec(t.Context(), `SELECT count(*) FROM products`) // the build waits for this snapshot
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Up(ctx, pool) }()
	awaitBuilds(t, pool, 1, done)
	kill()
	require.Error(t, ended(t, done))
	awaitBuilds(t, pool, 0, nil)
	require.NoError(t, old.Rollback(t.Context()))
	require.Equal(t, []string{"false"}, texts(t, pool, valid))

	require.NoError(t, Up(t.Context(), pool))
	require.Equal(t, []string{"true"}, texts(t, pool, valid))
	requirePending(t, pool, false)
}

// awaitBuilds waits until n builds of an index wait for older transactions. What ended instead says why.
func awaitBuilds(t testing.TB, pool *pgxpool.Pool, n int, instead <-chan error) {
	t.Helper()
	var err error
	over := false
	require.Eventually(t, func() bool {
		select {
		case err = <-instead:
			over = true
		default:
		}
		return over || len(texts(t, pool, `SELECT phase FROM pg_stat_progress_create_index
			WHERE datname = current_database() AND phase LIKE 'waiting%'`)) == n
	}, pgtest.Wait, 10*time.Millisecond)
	require.False(t, over, "the migration ended before it waited: %v", err)
}

// ended waits for what a migration returned.
func ended(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(pgtest.Wait):
		require.FailNow(t, "the migration does not end")
		return nil
	}
}

// Ensure the digest, by which tests share a template of the schema, changes with any migration.
func TestDigestChangesWithTheMigrations(t *testing.T) {
	t.Parallel()
	released := fstest.MapFS{"1.sql": {Data: []byte("a")}}
	seen := map[string]bool{}
	for _, files := range []fstest.MapFS{
		released,
		{"1.sql": {Data: []byte("b")}},
		{"2.sql": {Data: []byte("a")}},
		{"1.sql": {Data: []byte("a")}, "2.sql": {Data: []byte("b")}},
	} {
		seen[digest(files)] = true
	}
	require.Len(t, seen, 4)
	require.Equal(t, digest(released), digest(fstest.MapFS{"1.sql": {Data: []byte("a")}}), "the same files have the same digest")
}
