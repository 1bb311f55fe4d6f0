package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	updatesAggregate = regexp.MustCompile(`(?is)\bUPDATE\s+(ONLY\s+)?(orders|payments|products|stock)\b`)
	comparesVersion  = regexp.MustCompile(`(?s)\bSET\b.*\bversion = \$3 \+ 1\s+WHERE tenant_id = \$1 AND .*\bAND version = \$3\s*$`)
	writesPart       = regexp.MustCompile(`(?is)\b(UPDATE|DELETE FROM)\s+(ONLY\s+)?(order_lines|refunds)\b`)
	replaces         = regexp.MustCompile(`(?is)(\bINSERT INTO (orders|order_lines|payments|products|stock)\b.*\bDO UPDATE\b)|` +
		`(\b(DELETE FROM|TRUNCATE|MERGE INTO|COPY)\s+(orders|payments|products|stock)\b)`)
)

// Ensure no statement of the project writes an aggregate without comparing its version: neither an UPDATE nor an insert
// that replaces, and the parts of an aggregate only under its version.
//
// Standard: litespec/ext/concurrency#reject-silent-overwrites
func TestEveryUpdateOfAnAggregateComparesTheVersion(t *testing.T) {
	t.Parallel()
	updated := map[string]int{}
	for where, sql := range statements(t) {
		if m := updatesAggregate.FindStringSubmatch(sql); m != nil {
			updated[strings.ToLower(m[2])]++
			require.Regexp(t, comparesVersion, sql, where)
		}
		require.NotRegexp(t, writesPart, sql, where)
		require.NotRegexp(t, replaces, sql, where)
	}
	require.Equal(t, map[string]int{"orders": 1, "payments": 1, "products": 1, "stock": 1}, updated)
}

// statements is every text of the project's code and migrations that could be SQL, by where it stands.
func statements(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "testkit" || name == "node_modules"):
			return filepath.SkipDir
		case path == filepath.Join(root, "docs", "guide"): // exercises: programs of their own
			return filepath.SkipDir
		case strings.HasSuffix(name, ".sql"):
			raw, err := os.ReadFile(path)
			all[path] = string(raw)
			return err
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return literals(path, all)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 100, "the project's code was not found")
	return all
}

// literals adds the string literals of a Go file.
func literals(path string, all map[string]string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			all[files.Position(l.Pos()).String()] = text
		}
		return true
	})
	return nil
}
