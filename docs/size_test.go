package docs_test

import (
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
	serviceFolder = regexp.MustCompile(`^(internal/(domain|app|httpapi|infra|boot)|cmd/(api|worker|migrate)|client|migrations)/`)
	statedSize    = regexp.MustCompile(`\*\*The (service|workbench|proof)\*\*, ([0-9,]+):`)
)

// Ensure the sizes that README states are right within a tenth.
func TestREADMEStatesTheSizes(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != root || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".gen.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		lines[partOf(name)] += strings.Count(string(raw), "\n")
		return err
	}))
	stated := statedSize.FindAllStringSubmatch(read(t, "../README.md"), -1)
	require.Len(t, stated, len(lines))
	for _, s := range stated {
		said, err := strconv.Atoi(strings.ReplaceAll(s[2], ",", ""))
		require.NoError(t, err)
		require.InEpsilon(t, lines[s[1]], said, 0.1, s[1])
	}
}

// partOf returns the part of the repository that a Go file belongs to.
func partOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_test.go"):
		return "proof"
	case serviceFolder.MatchString(name):
		return "service"
	default:
		return "workbench"
	}
}
