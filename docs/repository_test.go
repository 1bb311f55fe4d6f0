// Package docs_test holds the records and the pages of this folder to the code and the contract.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository, seen from this folder.
const root = ".."

func read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// goFiles parses the Go files under a folder of the repository, by their path.
func goFiles(t testing.TB, folder string, keep func(name string) bool) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2: // .git, .data; not .. itself
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || !keep(d.Name()):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil { // a file that does not parse is reported by the compiler
			files[strings.TrimPrefix(filepath.ToSlash(path), root+"/")] = file
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

func isTestFile(name string) bool { return strings.HasSuffix(name, "_test.go") }

func isCode(name string) bool { return !isTestFile(name) }

// goTest is one test function of the repository.
type goTest struct {
	file  string
	marks []string // the provisions that its comment says it proves
}

var mark = regexp.MustCompile(`litespec/ext/concurrency#([a-z-]+)`)

// tests finds every test function of the repository, by its name.
func tests(t testing.TB) map[string][]goTest {
	t.Helper()
	found := map[string][]goTest{}
	for path, file := range goFiles(t, ".", isTestFile) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !regexp.MustCompile(`^(Test|Fuzz)[A-Z]`).MatchString(f.Name.Name) {
				continue
			}
			test := goTest{file: path}
			for line := range strings.SplitSeq(f.Doc.Text(), "\n") {
				if _, after, ok := strings.Cut(line, "Standard:"); ok {
					for _, m := range mark.FindAllStringSubmatch(after, -1) {
						test.marks = append(test.marks, m[1])
					}
				}
			}
			found[f.Name.Name] = append(found[f.Name.Name], test)
		}
	}
	return found
}

// requireSymbol asks for a declaration in a Go file (a method as Type.Method), or for a text in any other file.
func requireSymbol(t testing.TB, path, symbol string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Errorf("%s: there is no such file", path)
		return
	}
	if filepath.Ext(path) != ".go" {
		if !strings.Contains(string(raw), symbol) {
			t.Errorf("%s does not contain %q", path, symbol)
		}
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, raw, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if slices.Contains(declared(d), symbol) {
			return
		}
	}
	t.Errorf("%s does not declare %s", path, symbol)
}

// declared is the names that a top-level declaration declares.
func declared(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{receiver(d) + d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
		return names
	}
	return nil
}

// receiver is the name of a method's type and a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
