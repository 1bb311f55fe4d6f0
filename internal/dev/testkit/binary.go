package testkit

import (
	"context"
	"encoding/json"
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
	return Overlaid(t, command, "", nil)
}

// Overlaid is Binary with files that the build replaces or adds, by their path. variant tells this build from others of the
// command.
func Overlaid(t testing.TB, command, variant string, replaced map[string][]byte) string {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	name := command + variant
	if path := binaries.built[name]; path != "" {
		return path
	}
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "orders-test-")
		require.NoError(t, err)
		binaries.dir, binaries.built = dir, map[string]string{}
	}
	path := filepath.Join(binaries.dir, name)
	ctx, cancel := context.WithTimeout(t.Context(), buildWait)
	defer cancel()
	overlay := writeOverlay(t, replaced)
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", path, "example.com/orders/cmd/"+command).CombinedOutput()
	require.NoError(t, err, string(out))
	binaries.built[name] = path
	return path
}

// writeOverlay writes what the flag -overlay of the go command reads.
func writeOverlay(t testing.TB, replaced map[string][]byte) string {
	t.Helper()
	dir, files := t.TempDir(), map[string]string{}
	for path, text := range replaced {
		file := filepath.Join(dir, fmt.Sprint(len(files))+filepath.Ext(path))
		require.NoError(t, os.WriteFile(file, text, 0o600))
		files[path] = file
	}
	raw, err := json.Marshal(map[string]any{"Replace": files})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	return overlay
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
