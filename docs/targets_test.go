package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// makeCall is a call of make in code: quoted, at the beginning of an indented line, or in a script.
var makeCall = regexp.MustCompile("(?m)(?:`|^ {4,}(?:- run: )?|&& |^part [a-z]+ [0-9]+m )make ((?:[a-z][a-z-]*\\b ?)+)")

func targets(t testing.TB) (found []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(read(t, "../Makefile"), -1) {
		found = append(found, m[1])
	}
	return found
}

// called is the targets that a text calls.
func called(text string) (found []string) {
	for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.Fields(m[1])...)
	}
	return found
}

// Ensure each target of make that a page, a script or a template calls is in the Makefile.
func TestTargetsOfMakeExist(t *testing.T) {
	t.Parallel()
	known, seen := targets(t), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".data", "bin", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || !slices.Contains([]string{".md", ".sh", ".yml", ""}, filepath.Ext(path)) || d.Name() == "Makefile" {
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, target := range called(string(raw)) {
			seen++
			if !slices.Contains(known, target) {
				t.Errorf("%s calls make %s, which the Makefile does not have", path, target)
			}
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, seen, 50)
}

// workflow is what is checked of a GitHub workflow.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Timeout  int `yaml:"timeout-minutes"` //nolint:tagliatelle // GitHub's name
		Strategy struct {
			Matrix struct{ Target []string }
		}
		Steps []struct{ Uses, Run string }
	}
}

// Ensure the workflows run every target of .ci/run, may only read the repository, end in time, and take actions by commit.
func TestWorkflowsRunWhatCIRuns(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	pinned := regexp.MustCompile(`(?m)uses: .*$`)
	var run []string
	for _, path := range paths {
		var w workflow
		text := read(t, path)
		require.NoError(t, yaml.Unmarshal([]byte(text), &w), path)
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, path)
		for name, job := range w.Jobs {
			require.Positive(t, job.Timeout, "%s: %s", path, name)
			for _, target := range job.Strategy.Matrix.Target {
				target, _, _ = strings.Cut(target, " ")
				run = append(run, target)
			}
			for _, step := range job.Steps {
				run = append(run, called("    "+step.Run)...)
			}
		}
		for _, uses := range pinned.FindAllString(text, -1) {
			require.Regexp(t, `^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+$`, uses, path)
		}
	}
	known := targets(t)
	for _, target := range run {
		require.Contains(t, known, target)
	}
	inCI := called(read(t, "../.ci/run"))
	require.Contains(t, inCI, "test")
	for _, target := range inCI {
		require.Contains(t, run, target, "of .ci/run")
	}
}
