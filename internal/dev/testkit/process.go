package testkit

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/child"
)

// Running is cmd/api or cmd/worker, running as a process of its own.
type Running struct {
	*child.Process

	PID int
	URL string // where the API answers; empty for the worker
	Ops string // where /livez, /readyz and /metrics are
	t   testing.TB
}

// Process starts "api" or "worker" with this environment and returns once it works. It is killed when the test ends,
// unless it has ended before.
func Process(t testing.TB, command string, env map[string]string) *Running {
	t.Helper()
	p := Launch(t, command, env)
	p.AwaitReady()
	return p
}

// AwaitReady returns once the process works.
func (p *Running) AwaitReady() {
	p.t.Helper()
	addresses, err := p.Process.AwaitReady(bounded(p.t))
	require.NoError(p.t, err)
	p.URL, p.Ops = addresses.URL, addresses.Ops
}

// Refused starts "api" or "worker" with an environment that it must refuse: it returns what the process wrote before it
// ended with an error.
func Refused(t testing.TB, command string, env map[string]string) string {
	t.Helper()
	p := Launch(t, command, env)
	require.Error(t, p.Wait(), p.Output())
	return p.Output()
}

// Launch is Process without the wait until it works.
func Launch(t testing.TB, command string, env map[string]string) *Running {
	t.Helper()
	return LaunchBinary(t, Binary(t, command), env)
}

// LaunchBinary is Launch for a binary that has been built.
func LaunchBinary(t testing.TB, path string, env map[string]string, arguments ...string) *Running {
	t.Helper()
	process, err := child.Start(child.Command{Argv: append([]string{path}, arguments...), Env: env})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = process.Stop(os.Kill, Wait)
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(path), process.Output())
		}
	})
	return &Running{Process: process, PID: process.PID(), t: t}
}

// Kill ends the process as a crash would (SIGKILL).
func (p *Running) Kill() {
	p.t.Helper()
	require.NoError(p.t, p.Signal(os.Kill))
	_ = p.Wait()
}

// Terminate asks the process to end in good order (SIGTERM) and does not wait for it.
func (p *Running) Terminate() {
	p.t.Helper()
	require.NoError(p.t, p.Signal(syscall.SIGTERM))
}

// Stop asks the process to end in good order (SIGTERM), which it must do without an error.
func (p *Running) Stop() {
	p.t.Helper()
	p.Terminate()
	require.NoError(p.t, p.Wait(), p.Output())
}

// Wait waits for the end of the process and returns the error of an exit status other than 0.
func (p *Running) Wait() error {
	p.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(Wait):
		require.FailNow(p.t, "process does not end", p.Output())
	}
	return p.Err()
}

// Ended tells whether the process has ended.
func (p *Running) Ended() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}
