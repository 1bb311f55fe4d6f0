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
	"syscall"
	"time"

	"example.com/orders/internal/dev/child"
)

// ensureCluster makes the cluster unless there is one, and refuses one of another major version. Another process that has
// just begun to make it in the same place is waited for: the kernel drops its lock when it has finished or ended.
func (s *Server) ensureCluster(ctx context.Context) error {
	base, err := os.Open(s.store.base)
	if err != nil {
		return fmt.Errorf("open the data directory: %w", err)
	}
	defer base.Close()
	if err := lock(ctx, base); err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	made, err := os.ReadFile(filepath.Join(s.store.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return s.makeCluster(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the cluster's version: %w", err)
	}
	if major := strings.TrimSpace(string(made)); major != s.install.major {
		return fmt.Errorf("the data in %s were made by PostgreSQL %s, but %s holds PostgreSQL %s: set PG_BINDIR to a "+
			"PostgreSQL %s, or remove the directory", s.store.base, major, s.install.dir, s.install.version, major)
	}
	return nil
}

// lock waits for the lock on a file until ctx ends. The file's Close releases it.
func lock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
	p, err := s.run("initdb", args...)
	if err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("make a cluster: %w", ctx.Err()), p.Stop(syscall.SIGINT, killTimeout))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("make a cluster: initdb: %w: %s", err, p.Tail())
	}
	return nil
}

// run starts a program of the installation. It ends with this process, and a throw-away directory goes with it.
func (s *Server) run(program string, args ...string) (*child.Process, error) {
	c := child.Command{
		Argv: append([]string{filepath.Join(s.install.dir, program)}, args...), Env: map[string]string{"LC_ALL": "C", "TZ": "UTC"}, // predictable messages
		Dir: s.store.base, User: s.store.user, Orphan: "INT",
	}
	if s.store.throwAway {
		c.Remove = s.store.base
	}
	return child.Start(c)
}
