package chaos

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	foundBy = regexp.MustCompile(`(?m)^found by: (?:chaos|test (\S+) \^(Test\w+)\$)$`)
	patched = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)
	hunk    = regexp.MustCompile(`(?m)^@@.*\n((?:[ +-].*\n)+)`)
)

// Ensure each fault that make chaos-faults plants still fits the code, and the test that is to find it exists.
func TestFaultsFit(t *testing.T) {
	t.Parallel()
	const root = "../.."
	patches, err := filepath.Glob("faults/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, path := range patches {
		text := content(t, path)
		finder := foundBy.FindStringSubmatch(text)
		require.NotNil(t, finder, path)
		if finder[1] != "" {
			files, err := filepath.Glob(filepath.Join(root, finder[1], "*_test.go"))
			require.NoError(t, err)
			var tests strings.Builder
			for _, file := range files {
				tests.WriteString(content(t, file))
			}
			require.Contains(t, tests.String(), "func "+finder[2]+"(", path)
		}
		for part := range strings.SplitSeq(text, "\ndiff --git ") {
			file := patched.FindStringSubmatch(part)
			if file == nil {
				continue // what stands above the first file
			}
			source := content(t, filepath.Join(root, file[1]))
			for _, h := range hunk.FindAllStringSubmatch(part, -1) {
				require.Contains(t, source, before(h[1]), "%s in %s", path, file[1])
			}
		}
	}
}

// before is what a hunk expects to find.
func before(hunk string) string {
	var was strings.Builder
	for line := range strings.Lines(hunk) {
		if line[0] != '+' {
			was.WriteString(line[1:])
		}
	}
	return was.String()
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}
