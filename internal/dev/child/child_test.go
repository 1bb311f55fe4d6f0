package child

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/boot/process"
)

// wait bounds what the tests wait for.
const wait = time.Minute

const parentVariable = "CHILD_TEST_PARENT"

// TestMain lets the test binary play a parent: it starts a child, tells its process id and waits until it is killed.
func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	p, err := Start(Command{Argv: []string{"/bin/sleep", "600"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// Ensure a child ends when its parent is killed, which can tell it nothing.
func TestAChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	_, err = parent.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	t.Cleanup(func() { _ = parent.Process.Kill(); _ = parent.Wait() })
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0), "the child runs")

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return ended(pid) }, wait, 10*time.Millisecond)
}

// ended tells whether a process is gone, or a zombie that its new parent has not waited for yet.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || len(state) > 0 && state[0] == 'Z'
}

// Ensure a program counts as started when it says so, and not before; what it has said can be asked for again.
func TestReadyIsWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	const program = `read -r _ <&5; echo '{"url":"http://a","ops":"http://b"}' >&4; read -r _ <&5`
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer to.Close()
	p, err := Start(Command{Argv: []string{"/bin/sh", "-c", program}, Extra: from})
	require.NoError(t, err)
	require.NoError(t, from.Close())
	t.Cleanup(func() { _ = p.Stop(os.Kill, wait) })

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.AwaitReady(over)
	require.ErrorIs(t, err, context.Canceled, "it has not said so yet")

	_, err = to.WriteString("go on\n")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	for range 2 {
		got, err := p.AwaitReady(ctx)
		require.NoError(t, err)
		require.Equal(t, process.Addresses{URL: "http://a", Ops: "http://b"}, got)
	}
}

// Ensure a program that ends before it has started is an error with what it wrote.
func TestAProgramThatEndsBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	p, err := Start(Command{Argv: []string{"/bin/sh", "-c", "echo no database; exit 3"}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_, err = p.AwaitReady(ctx)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no database")
}
