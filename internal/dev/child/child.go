// Package child runs programs that never outlive this process, however it ends.
package child

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/orders/internal/boot/process"
)

// guard leaves a watcher behind and becomes the program, which so has the id of this shell. The watcher reads from a pipe
// that the kernel closes when the parent ends, however it ends: it signals the program, and removes a directory once that
// has gone, or after 30 s. A line on the pipe says that the program has ended before the parent. The watcher is started by a
// shell that ends at once, because a server must not find a child that it does not know.
const guard = `
signal=$1 remove=$2
shift 2
( (
	read -r _ <&3 && exit
	kill -s "$signal" $$
	tries=0
	while [ -n "$remove" ] && kill -0 $$ && [ $tries -lt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
	[ -z "$remove" ] || { cd / && rm -rf -- "$remove"; }
) </dev/null >/dev/null 2>&1 4<&- 5<&- & )
exec "$@" 3<&-
`

const (
	readyFD = "4"
	// ExtraFD is the descriptor of Command.Extra in the program.
	ExtraFD = 5

	outputWait = 2 * time.Second // for the end of the output of a program that has ended
	outputSize = 16 << 20        // what is kept of it
	tailLines  = 20
)

// Command says what to run. Only Argv is required.
type Command struct {
	Argv   []string
	Env    map[string]string // beside PATH and LD_LIBRARY_PATH, all that the program gets of an environment
	Dir    string
	User   *syscall.Credential // nil: ourselves
	Output io.Writer           // gets what the program writes, besides what is kept; nil: nothing does
	Orphan string              // the signal that the program gets when this process has ended; empty: KILL
	Remove string              // a directory to remove when this process has ended before the program; empty: none
	Extra  *os.File            // is the descriptor ExtraFD of the program; nil: there is none
}

// Process is a running program. Its methods may be called from several goroutines.
type Process struct {
	cmd    *exec.Cmd
	name   string
	pipe   *os.File
	ready  chan struct{} // closed when the program has said that it has started
	listen process.Addresses
	output Output
	done   chan struct{}
	err    error
}

// Start starts a program, in a process group of its own: a Ctrl-C at the terminal reaches this process only.
func Start(c Command) (*Process, error) {
	watch, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the watcher: %w", err)
	}
	defer watch.Close()
	p := &Process{name: c.Argv[0], pipe: pipe, ready: make(chan struct{}), done: make(chan struct{})}
	p.output.next = c.Output
	p.cmd = exec.Command("/bin/sh", append([]string{"-c", guard, "guard", cmp.Or(c.Orphan, "KILL"), c.Remove}, c.Argv...)...)
	p.cmd.Dir = c.Dir
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			p.cmd.Env = append(p.cmd.Env, name+"="+v)
		}
	}
	for name, value := range c.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = &p.output, &p.output, outputWait
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.User}
	ready, err := p.awaitStart()
	if err != nil {
		pipe.Close()
		return nil, err
	}
	defer ready.Close()
	p.cmd.ExtraFiles = []*os.File{watch, ready}
	if c.Extra != nil {
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, c.Extra)
	}
	if err := p.cmd.Start(); err != nil {
		pipe.Close()
		return nil, fmt.Errorf("run %s: %w", p.name, err)
	}
	go p.reap()
	return p, nil
}

// awaitStart returns the descriptor that the program writes to when it has started.
func (p *Process) awaitStart() (*os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe from %s: %w", p.name, err)
	}
	p.cmd.Env = append(p.cmd.Env, "READY_FD="+readyFD)
	go func() {
		defer from.Close()
		if json.NewDecoder(from).Decode(&p.listen) == nil {
			close(p.ready)
		}
	}()
	return to, nil
}

// Orphan does to the program what the end of this process would do.
func (p *Process) Orphan() { _ = p.pipe.Close() }

// reap also keeps the pipe reachable: were it collected, its finalizer would close it and end the program.
func (p *Process) reap() {
	p.err = p.cmd.Wait()
	_, _ = p.pipe.WriteString("ended\n")
	_ = p.pipe.Close()
	close(p.done)
}

// AwaitReady returns where the program listens, once it has said by READY_FD that it has started.
func (p *Process) AwaitReady(ctx context.Context) (a process.Addresses, err error) {
	select {
	case <-p.ready:
		return p.listen, nil
	case <-p.done:
		return a, fmt.Errorf("%s ended before it had started (%v): %s", p.name, p.err, p.Tail()) //nolint:errorlint // nil after exit 0
	case <-ctx.Done():
		return a, fmt.Errorf("wait for %s: %w: %s", p.name, ctx.Err(), p.Tail())
	}
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the program ended: nil for exit status 0. It is to be called after Done.
func (p *Process) Err() error { return p.err }

// Output is what the program has written, the last 16 MiB of it.
func (p *Process) Output() string { return p.output.String() }

// Tail is the last lines of the output.
func (p *Process) Tail() string { return p.output.Tail() }

// Signal sends a signal to the program. It fails where that has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop sends a signal, if the program still runs, and waits until it has ended. A program that takes longer than limit is
// killed with its process group, which is an error.
func (p *Process) Stop(s os.Signal, limit time.Duration) error {
	_ = p.Signal(s)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return fmt.Errorf("%s did not end within %v and was killed: %s", p.name, limit, p.Tail())
}

// Output keeps the end of what is written to it. The zero value is ready to use.
type Output struct {
	mu   sync.Mutex
	kept []byte
	next io.Writer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, b...)
	o.kept = o.kept[max(0, len(o.kept)-outputSize):]
	if o.next != nil {
		return o.next.Write(b)
	}
	return len(b), nil
}

// String implements fmt.Stringer.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.kept)
}

// Tail is the last lines.
func (o *Output) Tail() string {
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
