package testkit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outputWait bounds how long the end of a process is waited for once it has exited, where a child of its own still holds
// its output open.
const outputWait = 10 * time.Second

// Running is cmd/api or cmd/worker, running as a process of its own.
type Running struct {
	PID int
	URL string // where the API answers; empty for the worker
	Ops string // where /livez, /readyz and /metrics are

	t     testing.TB
	cmd   *exec.Cmd
	lines *lines
	done  chan struct{} // closed when the process has ended
	err   error         // how; to be read once done is closed
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
	command := filepath.Base(p.cmd.Path)
	select {
	case ready := <-p.lines.ready:
		p.URL, p.Ops = ready.URL, ready.Ops
	case <-p.done:
		require.FailNow(p.t, command+" ended before it worked", p.Output())
	case <-time.After(Wait):
		require.FailNow(p.t, command+" does not say that it works", p.Output())
	}
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
	p := &Running{t: t, lines: newLines(), done: make(chan struct{})}
	p.cmd = exec.Command(Binary(t, command))
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // and nothing else that could change what it does
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = p.lines, p.lines, outputWait
	require.NoError(t, p.cmd.Start())
	p.PID = p.cmd.Process.Pid
	endWatch := watch(t, p.PID)
	go func() {
		p.err = p.cmd.Wait()
		endWatch()
		close(p.done)
	}()
	t.Cleanup(p.cleanUp)
	return p
}

// Kill ends the process as a crash would (SIGKILL).
func (p *Running) Kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	_ = p.Wait()
}

// Terminate asks the process to end in good order (SIGTERM) and does not wait for it.
func (p *Running) Terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
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
	case <-p.done:
	case <-time.After(Wait):
		require.FailNow(p.t, "process does not end", p.Output())
	}
	return p.err
}

// Ended tells whether the process has ended.
func (p *Running) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Output is what the process has written so far.
func (p *Running) Output() string { return p.lines.String() }

func (p *Running) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

func (p *Running) cleanUp() {
	_ = p.cmd.Process.Kill() // fails where it has ended
	select {
	case <-p.done:
	case <-time.After(Wait):
		p.t.Errorf("process %d does not end although it was killed", p.PID)
	}
	if p.t.Failed() {
		p.t.Logf("%s:\n%s", filepath.Base(p.cmd.Path), p.Output())
	}
}

// watch kills the process when this one ends, however it ends: nothing that a test started outlives the tests. The
// shell reads from a pipe whose other end the kernel closes with this process.
func watch(t testing.TB, pid int) (end func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `read -r _; kill -9 "$1" 2>/dev/null`, "watch", strconv.Itoa(pid))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// lines keeps the output of a process and watches it for the line that says that the process works.
type lines struct {
	ready chan addresses

	mu      sync.Mutex
	all     bytes.Buffer
	scanned int
	found   bool
}

// addresses is where a process listens, as it says itself; the worker has no URL.
type addresses struct{ Msg, URL, Ops string }

func newLines() *lines { return &lines{ready: make(chan addresses, 1)} }

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.all.Write(p)
	for !l.found {
		rest := l.all.Bytes()[l.scanned:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		l.scan(rest[:end])
		l.scanned += end + 1
	}
	return n, err
}

func (l *lines) scan(line []byte) {
	var record addresses
	if json.Unmarshal(line, &record) != nil {
		return
	}
	if record.Msg == "api listens" || record.Msg == "worker works" {
		l.found = true
		l.ready <- record
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
