package testkit

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const testLabel = "test"

// MarkGoroutines marks the goroutines that this test starts from now on, those of its API included, as this test's:
// labels are inherited. Call it before Start where AwaitGoroutines is needed.
func MarkGoroutines(t testing.TB) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(testLabel, t.Name())))
}

// AwaitGoroutines waits until n of this test's goroutines are inside a function, such as a wait that nothing outside
// of the process can see. function is part of its full name.
func AwaitGoroutines(t testing.TB, function string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d goroutines in %s", n, function), func() bool { return inside(t, function) == n })
}

// inside reads the goroutine profile: groups of equal stacks, each with its count and its labels.
func inside(t testing.TB, function string) (n int) {
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	label := fmt.Sprintf("%q:%q", testLabel, t.Name())
	_, groups, _ := strings.Cut(profile.String(), "\n") // the first line is the total
	for group := range strings.SplitSeq(groups, "\n\n") {
		if !strings.Contains(group, label) || !strings.Contains(group, function+"+") {
			continue
		}
		var count int
		_, err := fmt.Sscanf(group, "%d @", &count)
		require.NoError(t, err)
		n += count
	}
	return n
}
