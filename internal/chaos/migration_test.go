package chaos

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

// nextMigration is a migration of the next release: a column, and an index that is built while requests run.
const nextMigration = `
-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE orders ADD COLUMN IF NOT EXISTS next_release text;
DROP INDEX CONCURRENTLY IF EXISTS orders_next_release_idx;
CREATE INDEX CONCURRENTLY orders_next_release_idx ON orders (tenant_id, next_release);
-- +goose Down
SELECT 1;
`

// undoMigration makes the next run of the migration do its work again. It waits for no lock for long.
const undoMigration = `
SET LOCAL lock_timeout = '500ms';
DELETE FROM goose_db_version WHERE version_id = 99;
ALTER TABLE orders DROP COLUMN IF EXISTS next_release;`

// migrator runs cmd/migrate with one migration more.
type migrator struct {
	path    string
	env     map[string]string
	running *testkit.Running // nil: has not run
}

func newMigrator(t testing.TB, owner string) *migrator {
	t.Helper()
	file, err := filepath.Abs("../../migrations/00099_next_release.sql")
	require.NoError(t, err)
	return &migrator{
		path: testkit.Overlaid(t, "migrate", "-next", map[string][]byte{file: []byte(nextMigration)}),
		env:  map[string]string{"DATABASE_URL": owner, "DB_LOCK_TIMEOUT": "1s"},
	}
}

// migrate runs the migration while requests run, and kills half of its runs.
func (n *nemesis) migrate() {
	m, kill, wait := n.migrator, n.dice.IntN(2) == 0, n.span(20, 1000)
	if n.harmed("migration") || m.running != nil && !m.running.Ended() {
		return
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Second)
	defer cancel()
	if _, err := n.DB.Exec(ctx, undoMigration); err != nil {
		return // the database is down, or a request holds the table
	}
	n.note("migrations", "migrate; kill it after %s: %t", wait, kill)
	m.running = testkit.LaunchBinary(n.t, m.path, m.env, "up")
	n.later("migration", wait, func() {
		if kill && !m.running.Ended() {
			n.note("killed migrations", "kill -9 migrate")
			m.running.Kill()
		}
	})
}

// finishMigration runs the migration to its end: whatever the killed runs have left, the next one completes it.
func (n *nemesis) finishMigration() {
	m := n.migrator
	if m.running == nil {
		return
	}
	if !m.running.Ended() {
		_ = m.running.Wait() // it may have met a fault
	}
	require.NoError(n.t, testkit.LaunchBinary(n.t, m.path, m.env, "up").Wait())
	if n.count(`pg_index WHERE indexrelid = 'orders_next_release_idx'::regclass AND indisvalid`) != 1 {
		n.violation("the index of the migration is not valid")
	}
}
