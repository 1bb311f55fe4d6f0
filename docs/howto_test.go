package docs_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure docs/how-to/README.md says of every folder what becomes of it in a clone: of the folder itself, of the one that it is
// in, or of each folder in it.
func TestEveryFolderIsKeptChangedOrDeleted(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:keep|change|delete) \\|").FindAllStringSubmatch(read(t, "how-to/README.md"), -1) {
		require.False(t, listed[row[1]], "%s is listed twice", row[1])
		require.DirExists(t, filepath.Join(root, row[1]))
		listed[row[1]] = true
	}
	var missing func(folder string) []string
	missing = func(folder string) (names []string) {
		if listed[folder] {
			return nil
		}
		entries, err := os.ReadDir(filepath.Join(root, folder))
		require.NoError(t, err)
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, missing(path.Join(folder, e.Name()))...)
			}
		}
		if len(names) == 0 && !slices.ContainsFunc(entries, os.DirEntry.IsDir) {
			return []string{folder}
		}
		return names
	}
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() && e.Name() != "bin" && !strings.HasPrefix(e.Name(), ".") {
			require.Empty(t, missing(e.Name()), "folders that docs/how-to/README.md does not list")
		}
	}
}

// Ensure the diffs of each page of docs/how-to apply to the code as it is, in their order. `make howto` also runs the commands.
func TestDiffsOfTheHowToPagesApply(t *testing.T) {
	t.Parallel()
	howTos, err := filepath.Glob("how-to/*.md")
	require.NoError(t, err)
	applied := 0
	for _, page := range howTos {
		scratch := t.TempDir()
		for _, diff := range regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
			for _, file := range regexp.MustCompile(`(?m)^--- a/(.+)$`).FindAllStringSubmatch(diff[1], -1) {
				copyOnce(t, filepath.Join(root, file[1]), filepath.Join(scratch, file[1]))
			}
			c := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", "-")
			c.Dir, c.Stdin = scratch, strings.NewReader(diff[1])
			c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(scratch)) // no repository of the caller's
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s: %s", page, out)
			applied++
		}
	}
	require.Positive(t, applied)
}

// copyOnce copies a file, unless an earlier diff has changed the copy already.
func copyOnce(t testing.TB, from, to string) {
	t.Helper()
	if _, err := os.Stat(to); err == nil {
		return
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, []byte(read(t, from)), 0o644))
}

// Ensure every scenario that the guide sends its reader to is one of the lab.
func TestGuideSendsToScenariosOfTheLab(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, file := range goFiles(t, "internal/dev/scenario", isCode) {
		for _, text := range literals(file) {
			known[text] = true
		}
	}
	chapters, err := filepath.Glob("guide/[1-9]-*.md")
	require.NoError(t, err)
	require.Len(t, chapters, 6)
	for _, chapter := range chapters {
		sent := regexp.MustCompile(`#scenario=([a-z-]+)`).FindAllStringSubmatch(read(t, chapter), -1)
		require.NotEmpty(t, sent, chapter)
		for _, to := range sent {
			require.True(t, known[to[1]], "%s: the lab has no scenario %s", chapter, to[1])
		}
	}
}
