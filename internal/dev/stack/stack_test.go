package stack

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure the first run in a fresh clone, which has no data folder yet, starts the sandbox and keeps its state there.
func TestFirstRunMakesTheDataFolder(t *testing.T) {
	t.Parallel()
	s := &Stack{
		Env: map[string]string{"AUTH_ISSUER": "http://sandbox.test"}, Sealed: true, Log: slog.New(slog.DiscardHandler), Notes: io.Discard,
	}
	state := filepath.Join(t.TempDir(), "not", "there", "sandbox.json")
	err := s.StartSandbox(t.Context(), "127.0.0.1:0", state)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.FileExists(t, state)
}

// Ensure a state file of another version of the sandbox stops the start with one line that says what to do, and is kept.
func TestForeignStateFileIsToldInOneLine(t *testing.T) {
	t.Parallel()
	s := &Stack{
		Env: map[string]string{"AUTH_ISSUER": "http://sandbox.test"}, Sealed: true, Log: slog.New(slog.DiscardHandler), Notes: io.Discard,
	}
	state := filepath.Join(t.TempDir(), "sandbox.json")
	const former = `{"signing_key":null` // of any other format
	require.NoError(t, os.WriteFile(state, []byte(former), 0o600))
	err := s.StartSandbox(t.Context(), "127.0.0.1:0", state)
	require.ErrorContains(t, err, state+" is not a state file of this version of the sandbox; move it away to start anew")
	require.NotContains(t, err.Error(), "\n")
	kept, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, former, string(kept))
}
