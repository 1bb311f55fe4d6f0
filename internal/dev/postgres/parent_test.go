package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/orders/scripts"
)

// parent is another process that has started a server.
type parent struct {
	cmd   *exec.Cmd
	stdin io.Closer
	port  int
	dir   string
}

func startParent(t *testing.T, dataDir string) parent {
	t.Helper()
	p := parent{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), helperVariable+"=1", "HELPER_DATA="+dataDir)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	if _, err := fmt.Fscan(out, &p.port, &p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	p := startParent(t, "")
	if closed(p.port) || gone(p.dir) {
		t.Fatal("the helper's server is not there")
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "port closed", func() bool { return closed(p.port) })
	eventually(t, "directory removed", func() bool { return gone(p.dir) })
}

func TestExitedParentLeavesNothing(t *testing.T) {
	t.Parallel()
	p := startParent(t, "")
	p.stdin.Close()
	eventually(t, "port closed", func() bool { return closed(p.port) })
	eventually(t, "directory removed", func() bool { return gone(p.dir) })
}

func TestDataDirOfAKilledParentIsUsableAtOnce(t *testing.T) {
	t.Parallel()
	dir, _ := keptDir(t)
	p := startParent(t, dir)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if s := start(t, Options{DataDir: dir}); s.store.base != p.dir {
		t.Errorf("data in %s, the killed one had them in %s", s.store.base, p.dir)
	}
}

func TestParentKilledDuringInitdb(t *testing.T) {
	t.Parallel()
	store, err := openStorage("", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	in, err := find(t.Context(), scripts.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{install: in, store: store}
	draft := store.data() + ".new"
	if err := errors.Join(store.mkdir(draft), store.writePassword("secret")); err != nil {
		t.Fatal(err)
	}
	p, err := s.run("initdb", "-D", draft, "-U", superuser, "--pwfile="+store.passwordFile(), "--no-sync")
	if err != nil {
		t.Fatal(err)
	}
	p.Orphan() // what the kernel does when the parent dies
	<-p.Done()
	eventually(t, "directory removed", func() bool { return gone(store.base) })
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // in the middle of initdb
	defer cancel()
	_, err := Start(ctx, Options{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestRootsDataAreInOnePlace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has a server with another user's rights")
	}
	dir, base := keptDir(t)
	for _, sql := range []string{"create table kept ()", "drop table kept"} { // the second time finds the same place
		var log bytes.Buffer
		s := start(t, Options{DataDir: dir, Log: &log})
		execute(t, s, sql)
		if s.store.base != base || !strings.Contains(log.String(), base) || !gone(dir) {
			t.Errorf("data in %s, log %q", s.store.base, log.String())
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDataDirOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's directory")
	}
	dir := openDir(t)
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	mustContain(t, makeShared(dir), "belongs to another user")
}
