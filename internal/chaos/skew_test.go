package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/testkit"
)

const (
	// clockSkew is how far the wall clock of a skewed process is ahead: longer than every limit of the run but those on
	// tokens and on the provider's events.
	clockSkew = 2 * time.Minute
	// skewFrom is the shortest run with skewed processes: their build takes a minute, because it contains the whole
	// standard library.
	skewFrom = time.Minute
)

// buildSkewed builds the programs with a wall clock that is ahead. Go reads the clock without a call that a library could
// catch, so the build replaces time.Now. The monotonic clock is right.
func buildSkewed(t testing.TB) map[string]string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	raw, err := os.ReadFile(source)
	require.NoError(t, err)
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(raw), reads)
	skewed := strings.Replace(string(raw), reads, reads+fmt.Sprintf("\tsec += %d\n", int(clockSkew.Seconds())), 1)
	paths := map[string]string{}
	for _, command := range []string{"api", "worker"} {
		paths[command] = testkit.Overlaid(t, command, "-skewed", map[string][]byte{source: []byte(skewed)})
	}
	return paths
}

// skew replaces a process by one whose clock is ahead, or that one by one whose clock is right.
func (n *nemesis) skew() {
	p := n.parts[n.dice.IntN(len(n.parts))]
	if n.skewed == nil || n.harmed(p.name) || p.running.Ended() {
		return
	}
	p.skewed = !p.skewed
	n.note("clock changes", "start %s again with a clock that is ahead: %t", p.name, p.skewed)
	p.running.Kill()
	n.revive(p)
}
