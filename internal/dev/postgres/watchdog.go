package postgres

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// watchdog runs a program and ends it when the parent's end of the pipe at descriptor 3 closes, which the kernel sees
// to however the parent ends. A line on the pipe names a signal to pass on. Its own first argument is a directory to
// remove, but only when the pipe has closed: after a crash on purpose the data must stay.
//
// The helper that reads the pipe ignores USR1 from the moment the pipe has closed, so its exit code tells that case
// from the one where the program ended by itself.
const watchdog = `
remove=$1
shift
"$@" 3<&- 4<&- &
child=$!
(
	while read -r signal <&3; do kill -s "$signal" "$child"; done
	trap '' USR1
	kill -s INT "$child" 2>/dev/null
	exit 0
) &
reader=$!
wait "$child"
code=$?
kill -s USR1 "$reader" 2>/dev/null
if wait "$reader" 2>/dev/null && [ -n "$remove" ]; then
	cd / && rm -rf -- "$remove"
fi
exit "$code"
`

// command is a program to run under the watchdog.
type command struct {
	argv   []string
	dir    string // the working directory
	remove bool   // remove dir when the parent ends
	user   *syscall.Credential
	lock   *os.File // stays locked until the program has ended, even if this process ends first; may be nil
}

// process is a program under the watchdog. Its err may be read once done is closed.
type process struct {
	cmd  *exec.Cmd
	pipe *os.File
	tail *tail
	done chan struct{}
	err  error
}

func startProcess(c command) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the watchdog: %w", err)
	}
	defer r.Close()
	p := &process{pipe: w, tail: &tail{}, done: make(chan struct{})}
	p.cmd = c.watched(r, p.tail)
	if err := p.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("run %s: %w", c.argv[0], err)
	}
	go p.reap()
	return p, nil
}

// watched gives the watchdog a session of its own: a Ctrl-C at the terminal then reaches the parent only, which
// decides about the order of things.
func (c command) watched(pipe *os.File, out io.Writer) *exec.Cmd {
	remove := ""
	if c.remove {
		remove = c.dir
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", watchdog, "postgres-watchdog", remove}, c.argv...)...)
	cmd.Dir, cmd.Env = c.dir, childEnv()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{pipe}
	if c.lock != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.lock)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.user}
	cmd.WaitDelay = time.Second // for output, once the watchdog itself is gone
	return cmd
}

// reap also keeps the pipe reachable: were it collected, its finalizer would close it and end the program.
func (p *process) reap() {
	p.err = p.cmd.Wait()
	p.pipe.Close()
	close(p.done)
}

// stop closes the pipe and waits; a program that had ended before is an error.
func (p *process) stop(timeout time.Duration) error {
	select {
	case <-p.done:
		return fmt.Errorf("PostgreSQL had ended by itself (%v): %s", p.err, p.tail) //nolint:errorlint // nil after exit 0
	default:
	}
	p.pipe.Close()
	return p.wait(timeout)
}

// end passes a signal on and waits.
func (p *process) end(signal string, timeout time.Duration) error {
	_, _ = fmt.Fprintln(p.pipe, signal) // fails only if the program has just ended, which wait will see
	return p.wait(timeout)
}

// wait falls back on killing the whole session, which cannot be another's: it has not been reaped yet.
func (p *process) wait(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	<-p.done
	return fmt.Errorf("PostgreSQL did not end within %v and was killed: %s", timeout, p.tail)
}

// childEnv keeps little of the environment: PGDATA and its like would change the server, LC_ALL makes messages
// predictable, and the rest is no business of a process of another user.
func childEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
