package migrations

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// serviceTables is the service's own tables: all but those of River and goose, which stay where they are when the others
// are spread.
const serviceTables = `
	SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
	AND relname NOT LIKE 'river\_%' AND relname NOT LIKE 'goose\_%'`

// Ensure the schema can be spread by tenant: tenant_id leads every primary, unique and foreign key, on both sides, and
// no table has a trigger or a sequence, whose effects would stay on one machine.
func TestTenantLeadsEveryKey(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))

	keyed := texts(t, pool, `SELECT DISTINCT c.conrelid::regclass::text FROM pg_constraint c WHERE c.contype = 'p'
		AND c.conrelid IN (`+serviceTables+`)`)
	require.Equal(t, texts(t, pool, `SELECT oid::regclass::text FROM (`+serviceTables+`) s`), keyed, "tables and their primary keys")
	require.Contains(t, keyed, "orders")

	require.Empty(t, texts(t, pool, `
		SELECT i.indexrelid::regclass::text FROM pg_index i WHERE i.indisunique AND i.indrelid IN (`+serviceTables+`)
		AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = 'tenant_id')`),
		"primary and unique keys that tenant_id does not lead")
	foreign := texts(t, pool, `SELECT conname::text FROM pg_constraint WHERE contype = 'f' AND conrelid IN (`+serviceTables+`)`)
	require.NotEmpty(t, foreign)
	led := texts(t, pool, `
		SELECT c.conname::text FROM pg_constraint c
		JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] AND a.attname = 'tenant_id'
		JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1] AND b.attname = 'tenant_id'
		WHERE c.contype = 'f' AND c.conrelid IN (`+serviceTables+`)`)
	require.Equal(t, foreign, led, "foreign keys, and those that tenant_id leads on both sides")

	require.Empty(t, texts(t, pool, `SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN (`+serviceTables+`)`))
	require.Empty(t, texts(t, pool, `
		SELECT d.objid::regclass::text FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
		WHERE d.refobjid IN (`+serviceTables+`)`), "sequences")
}
