package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// build builds the programs as `make build` does.
func (b *bench) build(ctx context.Context) error {
	b.say("building the API and the worker")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", b.dir+"/",
		"example.com/orders/cmd/api", "example.com/orders/cmd/worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return nil
}

// child is the API or the worker as a process of its own.
type child struct {
	name string
	host string // of the API's listener; empty for the worker
	ops  string // URL of the listener for operators
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error // how it ended; to be read once done is closed
}

// startChild starts a program with the settings of the bench and of env, and nothing else of the environment. It
// returns once the program says that it works.
func (b *bench) startChild(ctx context.Context, name string, env map[string]string) (*child, error) {
	c := &child{name: name, out: &output{ready: make(chan addresses, 1)}, done: make(chan struct{})}
	c.cmd = exec.Command(filepath.Join(b.dir, name))
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	settings := maps.Clone(b.env)
	maps.Copy(settings, env)
	for name, value := range settings {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	// A Ctrl-C at the terminal is for this process, which stops its children in its turn.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	endWatch, err := watch(c.cmd.Process.Pid)
	go func() { c.err = c.cmd.Wait(); endWatch(); close(c.done) }()
	b.stops = append(b.stops, c.stop)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", name, err)
	}
	return c, c.await(ctx)
}

func (c *child) await(ctx context.Context) error {
	select {
	case found := <-c.out.ready:
		c.ops = found.Ops
		if _, host, ok := bytes.Cut([]byte(found.URL), []byte("//")); ok {
			c.host = string(host)
		}
		return nil
	case <-c.done:
		return fmt.Errorf("%s ended at once: %w: %s", c.name, c.err, c.out)
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", c.name, ctx.Err())
	}
}

// stop stops the process in good order, or kills it when that takes too long. It may be called twice.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("%s: %w: %s", c.name, c.err, c.out)
		}
		return nil
	case <-time.After(stopWait):
		_ = c.cmd.Process.Kill()
		<-c.done
		return errors.New(c.name + " did not stop and was killed")
	}
}

// watch kills a process when this one ends, however it ends: the shell reads from a pipe whose other end the kernel
// closes with this process.
func watch(pid int) (end func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", `read -r _; kill -9 "$1" 2>/dev/null`, "watch", strconv.Itoa(pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return func() {}, err
	}
	return func() { _ = cmd.Process.Kill(); _ = in.Close(); _ = cmd.Wait() }, nil
}

// addresses is where a process listens, as it says itself in its log.
type addresses struct{ Msg, URL, Ops string }

// output hears where a process listens and keeps the end of what it wrote.
type output struct {
	ready chan addresses
	mu    sync.Mutex
	line  []byte
	tail  []byte
}

var _ io.Writer = (*output)(nil)

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	o.tail = o.tail[max(0, len(o.tail)-4096):]
	for part := range bytes.Lines(p) {
		if o.line = append(o.line, part...); !bytes.HasSuffix(o.line, []byte("\n")) {
			continue
		}
		var said addresses
		if json.Unmarshal(o.line, &said) == nil && said.Ops != "" {
			select {
			case o.ready <- said:
			default: // it has been heard before
			}
		}
		o.line = o.line[:0]
	}
	return len(p), nil
}

// String is the end of what was written.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}
