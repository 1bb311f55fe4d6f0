// Package internal_test holds the service to its layers: who may import whom.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "example.com/orders"

// A layer is the packages at and below some paths, and what those may import. Tests may import what they like.
type layer struct {
	of      []string
	project []string // of this project
	outside []string // of other modules; nil: any
	never   []string // of the standard library
}

// layers reads from the inside out. What is in none of them may be imported by none of them, but from cmd and boot.
var layers = []layer{
	{
		of:      []string{"internal/domain"},
		outside: []string{"github.com/google/uuid"},
		never: []string{
			"bufio", "context", "crypto/rand", "database", "embed", "expvar", "io", "log", "math/rand", "net", "os",
			"plugin", "runtime", "sync", "syscall", "testing",
		},
	},
	{
		of:      []string{"internal/app"},
		project: []string{"internal/domain"},
		outside: []string{"github.com/google/uuid", "github.com/go-json-experiment/json"},
		never:   []string{"database", "io", "log", "net", "os", "syscall", "testing"},
	},
	{
		of:      []string{"internal/httpapi"},
		project: []string{"api", "internal/app", "internal/domain", "internal/httpapi/openapi"},
		never:   []string{"database", "os", "testing"},
	},
	{
		of:      []string{"internal/infra/config"}, // what every process reads, so it knows none of them
		outside: []string{},
	},
	{
		of:      []string{"internal/infra"},
		project: []string{"internal/app", "internal/domain", "internal/infra"},
		never:   []string{"testing"},
	},
	{
		of:      []string{"client"}, // for other people's programs: it brings nothing of the service with it
		project: []string{"client/openapi"},
	},
}

// development is what stands in for the surroundings of the service, or tests it. Production packages never import it.
var development = []string{
	"cmd/bench", "cmd/dev", "cmd/sandbox", "internal/dev",
}

// Ensure that each layer imports only what it may, and production never what is for development.
func TestLayers(t *testing.T) {
	t.Parallel()
	for pkg, imports := range project(t) {
		for _, path := range imports {
			if why := forbidden(pkg, path); why != "" {
				t.Errorf("%s must not import %s: %s", pkg, path, why)
			}
		}
	}
}

// Ensure that no production binary carries what is for development, through whatever import.
func TestProductionBinaries(t *testing.T) {
	t.Parallel()
	imports := project(t)
	for pkg := range imports {
		if !below(pkg, []string{"cmd"}) || below(pkg, development) {
			continue
		}
		for _, path := range closure(imports, pkg) {
			if below(path, development) || below(path, []string{"github.com/swaggest/swgui"}) {
				t.Errorf("%s carries %s", pkg, path)
			}
		}
	}
}

// Ensure the application and the domain know no database: the idempotency store and the transactions are in
// infrastructure, and so is every statement about keys.
//
// Standard: litespec/ext/concurrency#keep-idempotency-persistence-in-infrastructure
func TestIdempotencyIdempotencyPersistenceIsInInfrastructure(t *testing.T) {
	t.Parallel()
	inside := []string{"internal/app", "internal/domain", "internal/httpapi"}
	keepFree(t, inside, "github.com/jackc/pgx", "database/sql", "github.com/riverqueue", "internal/infra")
	root := os.DirFS("..")
	for _, pkg := range append(inside, "internal/boot", "internal/infra/outbox", "internal/infra/stripegateway") {
		files, err := fs.Glob(root, pkg+"/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("files of %s: %v %v", pkg, files, err)
		}
		for _, file := range files {
			source, err := fs.ReadFile(root, file)
			if err != nil || !strings.HasSuffix(file, "_test.go") && strings.Contains(string(source), "idempotency_keys") {
				t.Errorf("%s speaks of idempotency_keys, error %v", file, err)
			}
		}
	}
}

// Ensure the application and the store know no HTTP: a replay is turned into a response at the boundary.
//
// Standard: litespec/ext/concurrency#map-replay-responses-at-the-api-boundary
func TestIdempotencyReplaysBecomeResponsesAtTheBoundary(t *testing.T) {
	t.Parallel()
	keepFree(t, []string{"internal/app", "internal/domain", "internal/infra/postgres"},
		"net/http", "github.com/go-chi", "internal/httpapi")
}

// keepFree fails for a package that imports what is below one of the paths.
func keepFree(t *testing.T, packages []string, paths ...string) {
	t.Helper()
	for pkg, imports := range project(t) {
		for _, path := range imports {
			if slices.Contains(packages, pkg) && below(path, paths) {
				t.Errorf("%s must not import %s", pkg, path)
			}
		}
	}
}

// forbidden says why a package must not import a path, or nothing.
func forbidden(pkg, path string) string {
	if below(path, development) && !below(pkg, development) {
		return "it is for development"
	}
	i := slices.IndexFunc(layers, func(l layer) bool { return below(pkg, l.of) })
	if i < 0 {
		return ""
	}
	l := layers[i]
	switch host, _, _ := strings.Cut(path, "/"); {
	case strings.HasPrefix(path, module+"/"):
		if !below(path, l.project) {
			return "its layer may import only " + list(l.project) + " of this project"
		}
	case strings.Contains(host, "."):
		if l.outside != nil && !below(path, l.outside) {
			return "its layer may import only " + list(l.outside) + " of other modules"
		}
	case below(path, l.never):
		return "its layer is kept free of it"
	}
	return ""
}

// below says whether a path is one of the roots or inside of one. A path of this project may come with its module.
func below(path string, roots []string) bool {
	path = strings.TrimPrefix(path, module+"/")
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

func list(paths []string) string {
	if len(paths) == 0 {
		return "nothing"
	}
	return strings.Join(paths, ", ")
}

// closure is a package and all that it imports, by way of other packages of this project too.
func closure(imports map[string][]string, pkg string) []string {
	all := []string{pkg}
	for i := 0; i < len(all); i++ {
		for _, path := range imports[strings.TrimPrefix(all[i], module+"/")] {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// project reads what each package of this project imports, tests aside. It reads the files rather than ask the go
// command, so that go test knows what the result depends on and does not answer from its cache.
func project(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch name := path.Base(file); {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && strings.HasPrefix(name, "."), file == "tools":
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			imports[path.Dir(file)] = append(imports[path.Dir(file)], importsOf(t, root, file)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := slices.Clone(development)
	for _, l := range layers {
		named = append(named, l.of...)
	}
	for _, root := range named {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(imports)), func(pkg string) bool { return below(pkg, []string{root}) }) {
			t.Fatalf("this test speaks of %s, and there is no such package", root)
		}
	}
	return imports
}

func importsOf(t *testing.T, root fs.FS, file string) []string {
	t.Helper()
	source, err := fs.ReadFile(root, file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	return paths
}
