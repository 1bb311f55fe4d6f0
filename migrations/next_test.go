package migrations

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nextMigration is what the next developer adds.
const nextMigration = `-- +goose Up
ALTER TABLE orders ADD COLUMN next_release text;
-- +goose Down
ALTER TABLE orders DROP COLUMN next_release;
`

// Ensure the tests of the migrations pass with one migration more than there is: no test may depend on the newest
// version. The go command puts the file in its place while it builds (-overlay); the tree is not touched.
func TestOneMoreMigrationPasses(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	file, overlay := filepath.Join(t.TempDir(), "next.sql"), filepath.Join(t.TempDir(), "overlay.json")
	replaced, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(here, "00099_next.sql"): file},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(nextMigration), 0o644))
	require.NoError(t, os.WriteFile(overlay, replaced, 0o644))

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a build from nothing included
	defer cancel()
	arguments := []string{"test", "-count=1", "-timeout=5m", "-overlay=" + overlay, "-skip=^" + t.Name() + "$"}
	if raceDetector() {
		arguments = append(arguments, "-race") // as this binary, so that its packages are not built twice
	}
	cmd := exec.CommandContext(ctx, "go", append(arguments, ".", "../cmd/migrate")...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
