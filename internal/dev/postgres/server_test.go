package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestThrowAway(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := start(t, Options{MaxConnections: 222, Settings: map[string]string{"work_mem": "5MB"}})
	t.Logf("PostgreSQL %s answered after %v", s.Version(), time.Since(began))
	for name, want := range map[string]string{
		"max_connections": "222", "work_mem": "5MB", "TimeZone": "UTC", "fsync": "off", "server_encoding": "UTF8",
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "",
	} {
		if got := query[string](t, s, "select current_setting('"+name+"')"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if group, err := syscall.Getpgid(s.proc.PID()); err != nil || group == syscall.Getpgrp() {
		t.Errorf("process group %d, error %v: a Ctrl-C would reach the server", group, err)
	}
	began = time.Now()
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("gone after %v", time.Since(began))
	if !closed(s.port) || !gone(s.store.base) {
		t.Error("the server or its directory outlived Stop")
	}
	mustContain(t, s.Restart(t.Context()), "already stopped")
}

func TestKillAndRestartKeepWhatWasCommitted(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Durable: true})
	execute(t, s, "create table kept (n int); insert into kept select generate_series(1, 100)")
	port := s.port
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if !closed(port) {
		t.Error("still listening after Kill")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](t, s, "select count(*) from kept"); n != 100 || s.port != port {
		t.Errorf("%d rows on port %d, want 100 on %d", n, s.port, port)
	}
	if err := s.Restart(t.Context()); err != nil { // while it runs
		t.Fatal(err)
	}
	if n := query[int](t, s, "select count(*) from kept"); n != 100 {
		t.Errorf("%d rows after a clean restart, want 100", n)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil || !gone(s.store.base) {
		t.Errorf("Stop after Kill left the throw-away directory, error %v", err)
	}
}

func TestDataDirKeepsDataAndIsExclusive(t *testing.T) {
	t.Parallel()
	dir, base := keptDir(t)
	s := start(t, Options{DataDir: dir})
	execute(t, s, "create table kept as select 42 as n")
	_, err := Start(t.Context(), Options{DataDir: dir})
	mustContain(t, err, base, "already in use by another `make run`")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := query[int](t, start(t, Options{DataDir: dir}), "select n from kept"); n != 42 {
		t.Errorf("n is %d, want 42", n)
	}
}

// Ensure a start that waits for another process to make the cluster ends with its context.
func TestWaitForTheClusterEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store, err := openStorage("", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer store.close()
	other, err := os.Open(store.base)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := lock(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Server{store: store}).ensureCluster(ctx) }()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits for the lock")
	}
}

func TestDataOfAnotherMajorVersion(t *testing.T) {
	t.Parallel()
	dir, base := keptDir(t)
	if err := os.MkdirAll(filepath.Join(base, "pgdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "pgdata", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DataDir: dir})
	mustContain(t, err, base, "made by PostgreSQL 9", "PG_BINDIR")
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(s.port)))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	mustContain(t, s.Restart(t.Context()), "port is already in use")
}

func TestFailsEarlyWithTheServersOwnWords(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"work_mem": "much"}})
	mustContain(t, err, `invalid value for parameter "work_mem"`)
}

func TestStopTellsThatTheServerHadDied(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.proc.Stop(syscall.SIGQUIT, killTimeout); err != nil {
		t.Fatal(err)
	}
	mustContain(t, s.Stop(), "ended by itself")
	if !gone(s.store.base) {
		t.Error("the throw-away directory is still there")
	}
}
