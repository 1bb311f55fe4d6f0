package migrations

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The schema as docs/data-model.md draws it, without the tables of River and goose.
const (
	ownTables = `SELECT oid, relname::text AS name FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname !~ '^(river|goose)_'`

	// A row of the table on the right has at most one partner where the foreign key is its whole primary key.
	drawnKeys = `SELECT parent.name || ' ||--o' || CASE WHEN f.conkey = p.conkey THEN '|' ELSE '{' END || ' ' || child.name || ' : "' ||
			(SELECT string_agg(attname, ', ' ORDER BY array_position(f.conkey, attnum)) FROM pg_attribute
				WHERE attrelid = f.conrelid AND attnum = ANY (f.conkey)) || '"'
		FROM pg_constraint f JOIN pg_constraint p ON p.conrelid = f.conrelid AND p.contype = 'p'
		JOIN (` + ownTables + `) child ON child.oid = f.conrelid JOIN (` + ownTables + `) parent ON parent.oid = f.confrelid
		WHERE f.contype = 'f'`

	drawnColumns = `SELECT t.name || ': ' || replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz') ||
			' ' || attname || concat(
				(SELECT ' PK' FROM pg_constraint WHERE conrelid = t.oid AND contype = 'p' AND attnum = ANY (conkey)),
				(SELECT ',FK' FROM pg_constraint WHERE conrelid = t.oid AND contype = 'f' AND attnum = ANY (conkey)))
		FROM (` + ownTables + `) t JOIN pg_attribute ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped`
)

// Ensure docs/data-model.md draws every table and every foreign key, and every column of a primary key; and that what it says
// of further columns is true.
func TestDataModelPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/data-model.md")
	require.NoError(t, err)
	pool := empty(t)
	require.NoError(t, Up(t.Context(), pool))

	var keys, names, columns []string
	for _, m := range regexp.MustCompile(`(?m)^ {4}(\w+ \|\|--o[|{] \w+ : ".+")$`).FindAllStringSubmatch(string(raw), -1) {
		keys = append(keys, m[1])
	}
	for _, entity := range regexp.MustCompile(`(?m)^ {4}(\w+) \{\n((?: {8}.+\n)+) {4}\}$`).FindAllStringSubmatch(string(raw), -1) {
		names = append(names, entity[1])
		for line := range strings.Lines(entity[2]) {
			column, _, _ := strings.Cut(strings.TrimSpace(line), ` "`)
			columns = append(columns, fmt.Sprintf("%s: %s", entity[1], column))
		}
	}
	require.ElementsMatch(t, texts(t, pool, "SELECT name FROM ("+ownTables+") t"), names)
	require.ElementsMatch(t, texts(t, pool, drawnKeys), keys)
	actual := texts(t, pool, drawnColumns)
	require.Subset(t, actual, columns)
	for _, column := range actual {
		require.True(t, !strings.Contains(column, " PK") || slices.Contains(columns, column), column)
	}
}
