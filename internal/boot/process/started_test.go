package process

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure the parent is told once, where the process listens, and then reads the end of the pipe.
func TestStartedTellsTheParentOnce(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	defer to.Close()
	fd, err := syscall.Dup(int(to.Fd())) // Started closes its descriptor
	require.NoError(t, err)
	require.NoError(t, to.Close())
	lookup := variable("READY_FD", strconv.Itoa(fd))

	require.NoError(t, Started(lookup, Addresses{URL: "http://a", Ops: "http://b"}))
	told, err := io.ReadAll(from) // ends because the descriptor is closed
	require.NoError(t, err)
	var got Addresses
	require.NoError(t, json.Unmarshal(told, &got), "one line of JSON")
	require.Equal(t, Addresses{URL: "http://a", Ops: "http://b"}, got)
}

// Ensure a process without a parent that waits tells nothing, and that a descriptor that is none is an error.
func TestStartedWithoutAParent(t *testing.T) {
	t.Parallel()
	require.NoError(t, Started(variable("OTHER", ""), Addresses{}))
	require.ErrorContains(t, Started(variable("READY_FD", "four"), Addresses{}), "READY_FD")
}
