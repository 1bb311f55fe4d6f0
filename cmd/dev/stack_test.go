package main

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure the first run in a fresh clone, which has no data folder yet, starts the sandbox and keeps its state there.
func TestFirstRunMakesTheDataFolder(t *testing.T) {
	t.Parallel()
	s := &stack{
		env: map[string]string{"AUTH_ISSUER": "http://sandbox.test"}, sealed: true, log: slog.New(slog.DiscardHandler), notes: io.Discard,
	}
	state := filepath.Join(t.TempDir(), "not", "there", "sandbox.json")
	_, err := s.startSandbox(t.Context(), "127.0.0.1:0", state)
	require.NoError(t, err)
	require.NoError(t, s.stop())
	require.FileExists(t, state)
}
