// Command bench measures the service next to pgbench, which sends the same work to the same tables. It runs the built API
// and worker as separate processes, on a durable PostgreSQL that it starts itself. docs/performance.md explains each
// figure. Everything listens on the loopback interface and stops with this command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/infra/config"
)

func main() {
	debug.SetGCPercent(400) // the load generator and the sandbox share the cores with the service
	process.Main("orders-bench", func(ctx context.Context, _ config.Lookup, _ *slog.Logger) error {
		o, err := parse(os.Args[1:], os.Stderr)
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, o.limit)
		defer cancel()
		return run(ctx, o, os.Stdout)
	})
}

// run measures, prints the figures, and writes the files that the flags name.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	began := time.Now()
	b := &bench{options: o, out: out, began: began}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return err
	}
	r := newReport(o, b.server.Version())
	if o.scale {
		err = b.measureScale(ctx, r)
	} else {
		err = b.measure(ctx, r)
	}
	if err != nil {
		return err
	}
	r.Took = time.Since(began).Round(time.Second).String()
	return r.publish(o, out)
}

// say prints a line of progress with the time since the start.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.out, "%6.1f s  "+format+"\n", append([]any{time.Since(b.began).Seconds()}, args...)...)
}
