package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/orders/internal/dev/child"
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

// service is the API or the worker as a process of its own.
type service struct {
	*child.Process

	name string
	host string // of the API's listener; empty for the worker
	ops  string // URL of the listener for operators
}

// startChild starts a program with the settings of the bench and of env, and nothing else of the environment. It
// returns once the program has started.
func (b *bench) startChild(ctx context.Context, name string, env map[string]string) (*service, error) {
	settings := maps.Clone(b.env)
	maps.Copy(settings, env)
	process, err := child.Start(child.Command{Argv: []string{filepath.Join(b.dir, name)}, Env: settings})
	if err != nil {
		return nil, err
	}
	s := &service{Process: process, name: name}
	b.stops = append(b.stops, s.stop)
	addresses, err := process.AwaitReady(ctx)
	s.ops, s.host = addresses.Ops, strings.TrimPrefix(addresses.URL, "http://")
	return s, err
}

// stop sends SIGTERM, and kills the process when it takes too long to end. It may be called twice.
func (s *service) stop() error {
	if err := s.Stop(syscall.SIGTERM, stopWait); err != nil {
		return err
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w: %s", s.name, err, s.Tail())
	}
	return nil
}
