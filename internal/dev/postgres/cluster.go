package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ensureCluster makes the cluster unless there is one, and refuses one of another major version.
func (s *Server) ensureCluster(ctx context.Context) error {
	made, err := os.ReadFile(filepath.Join(s.store.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return s.makeCluster(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the cluster's version: %w", err)
	}
	if major := strings.TrimSpace(string(made)); major != s.install.majorString() {
		return fmt.Errorf("the data in %s were made by PostgreSQL %s, but %s holds PostgreSQL %s: set PG_BINDIR to a "+
			"PostgreSQL %s, or remove the directory", s.store.base, major, s.install.dir, s.install.version, major)
	}
	return nil
}

// makeCluster works next to the final place and renames at the end, so that a run that was cut short leaves nothing
// that looks like a cluster.
func (s *Server) makeCluster(ctx context.Context) error {
	draft := s.store.data() + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove a half-made cluster: %w", err)
	}
	if err := s.store.mkdir(draft); err != nil {
		return err
	}
	if err := s.store.writePassword(rand.Text()); err != nil {
		return err
	}
	if err := s.initdb(ctx, draft); err != nil {
		return err
	}
	if err := os.Rename(draft, s.store.data()); err != nil {
		return fmt.Errorf("put the new cluster into place: %w", err)
	}
	return nil
}

func (s *Server) initdb(ctx context.Context, dir string) error {
	args := []string{"-D", dir, "-U", superuser, "--pwfile=" + s.store.passwordFile(), "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C"}
	if !s.options.Durable {
		args = append(args, "--no-sync")
	}
	p, err := startProcess(s.command("initdb", args...))
	if err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("make a cluster: %w", ctx.Err()), p.end("INT", killTimeout))
	}
	if p.err != nil {
		return fmt.Errorf("make a cluster: initdb: %w: %s", p.err, p.tail)
	}
	return nil
}

// command prepares a program of the installation to run under the watchdog.
func (s *Server) command(program string, args ...string) command {
	return command{
		argv:   append([]string{filepath.Join(s.install.dir, program)}, args...),
		dir:    s.store.base,
		remove: s.store.throwAway,
		user:   s.store.user,
		lock:   s.store.lock,
	}
}
