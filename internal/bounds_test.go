package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// unbounded is what waits for ever when a test fails, and what has a bound instead.
var unbounded = map[string]string{
	"pgxpool.New":           "pgtest.Pool, whose close and statements are bounded",
	"pgxpool.NewWithConfig": "pgtest.Pool, whose close and statements are bounded",
	"http.Get":              "a client with a Timeout",
	"http.Post":             "a client with a Timeout",
	"http.Head":             "a client with a Timeout",
	"net.Dial":              "net.DialTimeout",
}

// received is where a receive outside of a select is refused too: the tests of overlapping work.
var received = []string{"cmd/migrate", "internal/e2e", "internal/infra/postgres", "migrations"}

// Ensure that no failure of a test ends in a hang: what the tests wait for has a bound.
func TestTestsWaitWithABound(t *testing.T) {
	t.Parallel()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		helper := below(file, []string{"internal/dev/postgres/pgtest", "internal/dev/testkit"})
		if path.Ext(file) != ".go" || file == "internal/dev/postgres/pgtest/pool.go" || !helper && !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, why := range waits(parsed, below(file, received)) {
			t.Errorf("%s: %s", files.Position(why.at), why.text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type wait struct {
	at   token.Pos
	text string
}

// waits finds the waits without a bound in a file, the receives of goroutines and selects aside: they hold up no test.
func waits(file *ast.File, receives bool) (found []wait) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt, *ast.GoStmt:
			return false
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" { // of a sync.WaitGroup
				return false
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if instead := unbounded[x.Name+"."+n.Sel.Name]; instead != "" {
					found = append(found, wait{n.Pos(), fmt.Sprintf("%s.%s waits for ever: use %s", x.Name, n.Sel.Name, instead)})
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && receives {
				found = append(found, wait{n.Pos(), "a receive waits for ever: use testkit.Take"})
			}
		}
		return true
	})
	return found
}
