package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// buildWait bounds one build, on a machine that is busy and has nothing in its cache.
const buildWait = 10 * time.Minute

// binaries are built once for all tests of a test binary, which is why they belong to the package.
var binaries struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Binary builds a command of this module and returns its path.
func Binary(t testing.TB, command string) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	if path := binaries.built[command]; path != "" {
		return path
	}
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "orders-test-")
		require.NoError(t, err)
		binaries.dir, binaries.built = dir, map[string]string{}
	}
	path := filepath.Join(binaries.dir, command)
	ctx, cancel := context.WithTimeout(t.Context(), buildWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "example.com/orders/cmd/"+command).CombinedOutput()
	require.NoError(t, err, string(out))
	binaries.built[command] = path
	return path
}

// RemoveBinaries removes what Process has built. TestMain calls it when the tests are over.
func RemoveBinaries() error {
	binaries.Lock()
	defer binaries.Unlock()
	if binaries.dir == "" {
		return nil
	}
	if err := os.RemoveAll(binaries.dir); err != nil {
		return fmt.Errorf("remove test binaries: %w", err)
	}
	binaries.dir = ""
	return nil
}
