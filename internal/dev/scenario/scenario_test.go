package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// Ensure every scenario has an id of its own, shows provisions of the standard in the words of docs/standard.md, links to what
// is in the repository, and has knobs whose defaults are within their bounds.
func TestScenariosAreComplete(t *testing.T) {
	t.Parallel()
	standard, err := os.ReadFile(filepath.Join(root, "docs", "standard.md"))
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(standard)), " ")
	seen := map[string]bool{}
	for _, s := range All() {
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, s.ID)
		require.False(t, seen[s.ID], s.ID)
		seen[s.ID] = true
		require.NotEmpty(t, s.Title)
		require.NotEmpty(t, s.Promise)
		require.NotEmpty(t, s.Rules, s.ID)
		require.NotEmpty(t, s.Code, s.ID)
		require.NotEmpty(t, s.Tests, s.ID)
		for _, rule := range s.Rules {
			require.NotEmpty(t, RuleText(rule), rule)
			require.Equal(t, sentenceOf(page, rule), RuleText(rule), "the sentence of docs/standard.md on %s", rule)
		}
		for _, link := range append(s.Code, s.Tests...) {
			_, line := link.Find(os.DirFS(root))
			require.NotZero(t, line, "%s: %s has no %s", s.ID, link.Path, link.Name)
		}
		for _, k := range s.Knobs {
			require.LessOrEqual(t, k.Min, k.Default, s.ID)
			require.LessOrEqual(t, k.Default, k.Max, s.ID)
		}
	}
}

// sentenceOf returns the sentence of a rule on the page, which is in one line.
func sentenceOf(page, rule string) string {
	_, rest, _ := strings.Cut(page, " ### "+rule+" ")
	sentence, _, _ := strings.Cut(rest, " Code: ")
	return sentence
}

// Ensure a knob that is not there, or a value out of its bounds, is refused, and what is not chosen has its default.
func TestKnobsHaveBounds(t *testing.T) {
	t.Parallel()
	s, ok := Find("duplicates-at-once")
	require.True(t, ok)
	for _, chosen := range []map[string]int{{"duplicates": 1}, {"duplicates": 51}, {"other": 2}} {
		_, err := s.Set(chosen)
		require.Error(t, err)
	}
	values, err := s.Set(nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"duplicates": 20}, values)
}
