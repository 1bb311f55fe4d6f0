package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/dev/child"
	"example.com/orders/internal/dev/spans"
)

// childStop bounds how long a worker may take to stop in good order.
const childStop = 10 * time.Second

// worker is the worker as a process of its own, which can be killed for real. It stops when this process ends, however
// that ends.
type worker struct {
	*child.Process

	heard chan struct{} // closed when all that it reported has been read
}

// startWorker starts a worker with these settings and nothing else of the environment. report is told of its spans; nil: it
// makes none.
func startWorker(argv []string, env map[string]string, log io.Writer, report func(spans.Span)) (*worker, error) {
	if report != nil {
		argv = append(slices.Clip(argv), "spans")
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe from the worker: %w", err)
	}
	defer to.Close()
	process, err := child.Start(child.Command{Argv: argv, Env: env, Output: log, Orphan: "TERM", Extra: to})
	if err != nil {
		from.Close()
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	w := &worker{process, make(chan struct{})}
	go func() {
		defer close(w.heard)
		defer from.Close()
		spans.Read(from, report)
	}()
	return w, nil
}

// kill is kill -9, by the process's id, which cannot be another's before it has been waited for. It is an error that the
// worker had ended by itself.
func (w *worker) kill() error {
	_ = w.Signal(os.Kill)
	<-w.Done()
	<-w.heard
	how := "exit status 0"
	if err := w.Err(); err != nil {
		how = err.Error()
	}
	if how != "signal: killed" {
		return errors.New("the worker had ended by itself: " + how)
	}
	return nil
}

// stop stops the worker in good order, or kills it when that takes too long.
func (w *worker) stop(ctx context.Context) error {
	limit := childStop
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	err := w.Stop(syscall.SIGTERM, limit)
	<-w.heard
	return err
}

// RunWorker is a child's own run: the worker, until ctx ends. It tells the parent when it has started, and with report of
// every span.
func (s *Stack) RunWorker(ctx context.Context, report bool) (err error) {
	defer func() { err = errors.Join(err, s.Stop()) }()
	var processors []trace.SpanProcessor
	if report {
		pipe := spans.NewPipe(os.NewFile(child.ExtraFD, "parent"))
		processors = append(processors, spans.Processor(pipe.Report))
	}
	if err := s.StartTelemetry(ctx, processors...); err != nil {
		return err
	}
	worker, err := s.StartWorker(ctx)
	if err != nil {
		return err
	}
	if err := s.StartOps(ctx, worker); err != nil {
		return err
	}
	if err := process.Started(os.LookupEnv, process.Addresses{Ops: s.Ops.URL()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
