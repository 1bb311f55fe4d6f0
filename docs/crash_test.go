package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure the rows of docs/crash-points.md are numbered one by one, and the picture of each section shows each number of its
// table once.
func TestEveryCrashPointIsDrawn(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile(`(?m)^\| (\d+) \| `)
	note := regexp.MustCompile(`(?m)^ +Note over [\w,]+: (.+)$`)
	last := 0
	for section := range strings.SplitSeq(read(t, "crash-points.md"), "\n## ") {
		var rows, drawn []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			last++
			require.Equal(t, strconv.Itoa(last), m[1])
			rows = append(rows, m[1])
		}
		for _, m := range note.FindAllStringSubmatch(section, -1) {
			drawn = append(drawn, regexp.MustCompile(`\b\d+\b`).FindAllString(m[1], -1)...)
		}
		require.ElementsMatch(t, rows, drawn)
	}
	require.Positive(t, last)
}
