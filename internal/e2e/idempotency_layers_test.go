package e2e

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources lists the Go files of a directory of internal/, tests left out.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	var files []string
	for _, f := range all {
		if !strings.HasSuffix(f, "_test.go") {
			files = append(files, f)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// requireNoImport checks that no file of a directory of internal/ imports a package with one of the prefixes.
func requireNoImport(t *testing.T, dir string, prefixes ...string) {
	t.Helper()
	for _, file := range sources(t, dir) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			for _, prefix := range prefixes {
				require.False(t, strings.HasPrefix(path, prefix), "%s imports %s", file, path)
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
	for _, dir := range []string{"app", "domain", "httpapi"} {
		requireNoImport(t, dir, "github.com/jackc/pgx", "database/sql", "github.com/riverqueue", "example.com/orders/internal/infra")
	}
	for _, dir := range []string{"app", "domain", "httpapi", "boot", "infra/outbox", "infra/stripegateway"} {
		for _, file := range sources(t, dir) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "idempotency_keys", file)
		}
	}
}

// Ensure the application and the store know no HTTP: a replay is turned into a response at the boundary.
//
// Standard: litespec/ext/concurrency#map-replay-responses-at-the-api-boundary
func TestIdempotencyReplaysBecomeResponsesAtTheBoundary(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"app", "domain", "infra/postgres"} {
		requireNoImport(t, dir, "net/http", "github.com/go-chi", "example.com/orders/internal/httpapi")
	}
}
