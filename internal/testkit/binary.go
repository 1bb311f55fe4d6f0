package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	out, err := exec.Command("go", "build", "-o", path, "example.com/orders/cmd/"+command).CombinedOutput()
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
