package docs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure each line of the tables of the threat model and of the page on tokens names a test in its last column.
// TestPagesPointAtWhatExists checks that there is such a test.
func TestEveryThreatNamesItsTest(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"threat-model.md", "tokens.md"} {
		rows := 0
		for line := range strings.SplitSeq(read(t, page), "\n") {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			if !strings.HasPrefix(line, "| ") || cells[len(cells)-1] == "test" { // text, or the head of a table
				continue
			}
			rows++
			require.Regexp(t, testName, cells[len(cells)-1], "%s: %s", page, cells[0])
		}
		require.Greater(t, rows, 30, page)
	}
}
