package docs_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure the page on hostile input lists every fuzz test, and no other.
func TestEveryFuzzTestIsListed(t *testing.T) {
	t.Parallel()
	var written []string
	for _, name := range slices.Sorted(maps.Keys(tests(t))) {
		if strings.HasPrefix(name, "Fuzz") {
			written = append(written, name)
		}
	}
	listed := regexp.MustCompile(`Fuzz[A-Z]\w+`).FindAllString(read(t, "hostile-input.md"), -1)
	slices.Sort(listed)
	require.Equal(t, written, slices.Compact(listed))
}
