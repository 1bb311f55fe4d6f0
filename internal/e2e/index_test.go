package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure doc.go lists every subject: each test's name begins with the prefix that doc.go gives its file, and a file without
// tests says so in its name.
func TestIndexListsEverySubject(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	prefixes := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^//\t(Test\w+)\s+(\w+)_\*`).FindAllStringSubmatch(string(doc), -1) {
		prefixes[row[2]] = row[1]
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		subject, _, _ := strings.Cut(file, "_")
		tests := regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(source), -1)
		shared := strings.HasSuffix(file, "_helpers_test.go") || file == "main_test.go" || file == "operations_test.go"
		require.Equal(t, shared, len(tests) == 0, "%s", file)
		for _, test := range tests {
			if subject != "index" {
				require.NotEmpty(t, prefixes[subject], "doc.go lists no subject for %s: begin the file's name with one that it lists, or add a line", file)
				require.True(t, strings.HasPrefix(test[1], prefixes[subject]), "%s in %s: its name must begin with %s", test[1], file, prefixes[subject])
			}
		}
	}
}
