package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stop is a step of the walk: a file, and the symbol to read in it.
var stop = regexp.MustCompile("(?m)^\\| \\d+ \\| \\[`[^`]+`\\]\\(([^)]+)\\) \\| `([^`]+)` \\|")

// Ensure the walk has at most eight steps through as many files, and each file has the function or constant to read.
func TestWalkLeadsThroughEightFiles(t *testing.T) {
	t.Parallel()
	steps := stop.FindAllStringSubmatch(read(t, "walk.md"), -1)
	require.NotEmpty(t, steps)
	require.LessOrEqual(t, len(steps), 8)
	visited := map[string]bool{}
	for _, step := range steps {
		file, symbol := filepath.FromSlash(step[1]), step[2]
		require.False(t, visited[file], "%s is visited twice", file)
		visited[file] = true
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		name := regexp.QuoteMeta(symbol[strings.LastIndex(symbol, ".")+1:])
		require.Regexp(t, `(?m)^(func (\([^)]*\) )?|const |var )`+name+`\b`, string(source), "%s has no %s", file, symbol)
	}
}
