package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"example.com/orders/internal/dev/spans"
)

const (
	// childStop bounds how long a child may take to stop in good order.
	childStop = 10 * time.Second
	// pipeFD is the descriptor of a child's pipe to its parent.
	pipeFD = 3
)

// child is the worker as a process of its own, which can be killed for real.
type child struct {
	cmd   *exec.Cmd
	life  io.Closer // the worker stops when it is closed, which the kernel sees to however this process ends
	ready chan string
	done  chan struct{} // closed when it has ended, and all that it reported has been read
}

// startChild starts a worker with these settings and nothing else of the environment. report is told of its spans; nil: it
// makes none.
func startChild(argv []string, env map[string]string, log io.Writer, report func(spans.Span)) (*child, error) {
	if report != nil {
		argv = append(slices.Clip(argv), "spans")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A Ctrl-C at the terminal is for this process, which stops the worker in its turn.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the worker: %w", err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe from the worker: %w", err)
	}
	defer to.Close()
	cmd.ExtraFiles = []*os.File{to}
	if err := cmd.Start(); err != nil {
		from.Close()
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	c := &child{cmd: cmd, life: life, ready: make(chan string, 1), done: make(chan struct{})}
	go func() {
		spans.Read(from, func(ops string) { c.ready <- ops }, report)
		from.Close()
		_ = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// ops is where the worker's listener for operators is, once it has started.
func (c *child) ops(ctx context.Context) (url string, err error) {
	select {
	case url = <-c.ready:
		c.ready <- url
		return url, nil
	case <-c.done:
		return "", errors.New("the worker has ended")
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the worker: %w", context.Cause(ctx))
	}
}

// kill is kill -9, by the process's id, which cannot be another's before it has been waited for.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	<-c.done
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the worker: %w", err)
	}
	return nil
}

// stop stops the worker in good order, or kills it when that takes too long.
func (c *child) stop(ctx context.Context) error {
	_ = c.life.Close()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	case <-time.After(childStop):
	}
	return errors.Join(errors.New("the worker did not stop and was killed"), c.kill())
}

// RunWorker is a child's own run: the worker, until its parent closes standard input or ends. It tells the parent when it has
// started, and with report of every span.
func (s *Stack) RunWorker(ctx context.Context, report bool) (err error) {
	pipe := spans.NewPipe(os.NewFile(pipeFD, "parent"))
	ctx = untilOrphaned(ctx)
	defer func() { err = errors.Join(err, s.Stop()) }()
	if report {
		err = s.StartTelemetry(ctx, spans.Processor(pipe.Report))
	} else {
		err = s.StartTelemetry(ctx)
	}
	if err != nil {
		return err
	}
	worker, err := s.StartWorker(ctx)
	if err != nil {
		return err
	}
	if err := s.StartOps(ctx, worker); err != nil {
		return err
	}
	if err := pipe.Ready(s.Ops.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// untilOrphaned ends when standard input does: the parent has closed it, or has ended.
func untilOrphaned(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}
