package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure each kind of change is found where it can be made, conditions of a switch included, and changes that place alone.
func TestMutantsOfAFile(t *testing.T) {
	t.Parallel()
	const source = `package p

func f(a int, b bool, s string) (int, error) {
	log("x")
	switch {
	case a < 2, !b:
		return a + 1, errNone
	case ok(s):
		a -= 1
	}
	return len(s + "x"), nil
}
`
	file := filepath.Join(t.TempDir(), "p.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	found, err := mutantsOf(file)
	require.NoError(t, err)
	var changes []string
	for _, m := range found {
		changes = append(changes, strings.Trim(m.change(), "`"))
		changed, err := m.apply()
		require.NoError(t, err)
		require.Len(t, changed, len(source)+len(m.is)-(m.to-m.from))
		require.NotEqual(t, source, string(changed))
	}
	require.ElementsMatch(t, []string{
		"log(\"x\")` is left out", "<` becomes `<=", "<` becomes `>=", "2` becomes `3", "!` is left out", "+` becomes `-", "1` becomes `2",
		"errNone` becomes `nil", "ok(s)` becomes `!ok(s)", "-=` becomes `+=", "1` becomes `2",
	}, changes)
	require.Equal(t, "`"+file+"` | `log(\"x\")` | `log(\"x\")` is left out", found[0].key())
}

// Ensure each planted fault can be planted: what it replaces stands in its file once.
func TestPlantedFaultsFit(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join("../../..", f.file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(source), f.was), "%s: %q in %s", f.fault, f.was, f.file)
	}
}
