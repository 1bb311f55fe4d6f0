package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is the worker as a process of its own, which can be killed for real.
type child struct {
	cmd  *exec.Cmd
	life io.Closer // the worker stops when it is closed, which the kernel sees to however this process ends
	done chan struct{}
}

// startChild starts a worker with the stack's settings and nothing else of the environment.
func (d *demo) startChild() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, "worker")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range d.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = d.parts, d.parts
	// A Ctrl-C at the terminal is for this process, which stops the worker in its turn.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	life, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("pipe to the worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	w := &child{cmd: cmd, life: life, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(w.done) }()
	d.worker = w
	d.stops = append(d.stops, w.stop)
	return nil
}

// kill is kill -9, by the process's id, which cannot be another's before it has been waited for.
func (w *child) kill() error {
	err := w.cmd.Process.Kill()
	<-w.done
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the worker: %w", err)
	}
	return nil
}

// stop stops the worker in good order, or kills it when that takes too long.
func (w *child) stop(ctx context.Context) error {
	_ = w.life.Close()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	case <-time.After(childStop):
	}
	return errors.Join(errors.New("the worker did not stop and was killed"), w.kill())
}

const childStop = 10 * time.Second

// untilOrphaned ends when standard input does: the parent has closed it, or has ended.
func untilOrphaned(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}
