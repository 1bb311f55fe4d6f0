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
// Where one of the pages has been followed, the code is not the one that they speak of.
func TestDiffsOfTheHowToPagesApply(t *testing.T) {
	t.Parallel()
	howTos, err := filepath.Glob("how-to/*.md")
	require.NoError(t, err)
	diffs := map[string][]string{}
	for _, page := range howTos {
		for _, m := range regexp.MustCompile("(?ms)^```diff\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
			diffs[page] = append(diffs[page], m[1])
		}
		if len(diffs[page]) > 0 && apply(t, t.TempDir(), diffs[page][0], "--reverse") == "" {
			t.Skipf("%s has been followed", page)
		}
	}
	for page, all := range diffs {
		scratch := t.TempDir()
		for _, diff := range all {
			require.Empty(t, apply(t, scratch, diff), "a diff of docs/%s no longer applies to the code: update the diff, or "+
				"delete the page where your service has operations of its own", page)
		}
	}
}

// apply applies a diff to copies of its files in a scratch folder, and returns what git has against it.
func apply(t testing.TB, scratch, diff string, options ...string) string {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^(?:--- a|\+\+\+ b)/(.+)$`).FindAllStringSubmatch(diff, -1) {
		to := filepath.Join(scratch, m[1])
		if _, err := os.Stat(to); err == nil { // an earlier diff may have changed it
			continue
		}
		if raw, err := os.ReadFile(filepath.Join(root, m[1])); err == nil {
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			require.NoError(t, os.WriteFile(to, raw, 0o644))
		}
	}
	c := exec.CommandContext(t.Context(), "git", append([]string{"apply", "--whitespace=nowarn"}, options...)...)
	c.Dir, c.Stdin = scratch, strings.NewReader(diff)
	c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(scratch)) // no repository of the caller's
	out, err := c.CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return ""
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
