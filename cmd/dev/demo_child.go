package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	says chan string // where its listener for operators is, once
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
	w := &child{cmd: cmd, done: make(chan struct{}), says: make(chan string, 1)}
	log := &listening{next: d.parts, heard: w.says}
	cmd.Stdout, cmd.Stderr = log, log
	// A Ctrl-C at the terminal is for this process, which stops the worker in its turn.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if w.life, err = cmd.StdinPipe(); err != nil {
		return fmt.Errorf("pipe to the worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	go func() { _ = cmd.Wait(); close(w.done) }()
	d.worker = w
	d.stops = append(d.stops, w.stop)
	return nil
}

// ops is where the worker's listener for operators is; empty: it has not said so in time.
func (w *child) ops(ctx context.Context) (url string) {
	select {
	case url = <-w.says:
		w.says <- url
	case <-w.done:
	case <-ctx.Done():
	}
	return url
}

// listening hands a log on and hears where the process that writes it listens for operators.
type listening struct {
	next  io.Writer
	heard chan<- string
	line  []byte
}

// Write implements io.Writer. One process writes, so one write is at work at a time.
func (l *listening) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		if l.line = append(l.line, part...); !bytes.HasSuffix(l.line, []byte("\n")) {
			continue
		}
		var said struct{ Ops string }
		if json.Unmarshal(l.line, &said) == nil && said.Ops != "" {
			select {
			case l.heard <- said.Ops:
			default: // it has been heard before
			}
		}
		l.line = l.line[:0]
	}
	return l.next.Write(p)
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
