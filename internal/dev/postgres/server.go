package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"example.com/orders/internal/dev/child"
	"example.com/orders/scripts"
)

const (
	superuser    = "postgres"
	readyTimeout = 30 * time.Second
	stopTimeout  = 30 * time.Second
	killTimeout  = 10 * time.Second
	shutdownWait = 3 * time.Second
	portAttempts = 5
)

// Options say what kind of server to start. The zero value is a throw-away server on a free port.
type Options struct {
	// DataDir keeps the data between runs; as root, a directory of /var/tmp stands for it. Empty: a throw-away directory, removed
	// at Stop.
	DataDir        string
	Durable        bool              // false: fsync, synchronous_commit and full_page_writes off, for speed
	MaxConnections int               // 0: PostgreSQL's own default
	Settings       map[string]string // further settings, stronger than those of this package
	Log            io.Writer         // notices of this package, a line each; nil: none
}

// Server is a running PostgreSQL server. Its methods may be called from several goroutines.
type Server struct {
	options  Options
	install  installation
	store    *storage
	password string
	port     int

	mu      sync.Mutex
	proc    *child.Process // nil while the server is down
	stopped bool
}

// Start starts a server and returns once it answers queries. The context bounds the start only: the server runs until
// Stop, or until this process ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	o.Log = cmp.Or(o.Log, io.Discard)
	install, err := find(ctx, scripts.PostgreSQL)
	if err != nil {
		return nil, err
	}
	store, err := openStorage(o.DataDir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, install: install, store: store}
	if err := s.boot(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// URL is the superuser's address of a database. The host is always 127.0.0.1.
//
// The password is random because trust would make every local user a superuser, who can run programs as the server's
// user. It also makes sure that, should another server take the port first, this one cannot be mistaken for it.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort(loopback, strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Version is the server's version, such as 15.18.
func (s *Server) Version() string { return s.install.version }

// BinDir is the directory of the server's programs.
func (s *Server) BinDir() string { return s.install.dir }

// Stop shuts the server down, waits until it is gone and removes a throw-away directory. Further calls do nothing. The
// error of a server that had already died by itself says so.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	var err error
	if s.proc != nil {
		err = s.stopRunning()
	}
	return errors.Join(err, s.store.close())
}

// Kill crashes the server: no checkpoint, connections cut, like a power cut for all but the operating system. Restart
// brings it back.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down(syscall.SIGQUIT, killTimeout)
}

// Restart starts the server again on the same data and the same port, after Kill or, if it still runs, after a clean
// shutdown.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("restart PostgreSQL: already stopped")
	}
	if err := s.down(syscall.SIGINT, stopTimeout); err != nil {
		return err
	}
	return s.launch(ctx)
}

// stopRunning stops the server that runs. That it had ended by itself is an error.
func (s *Server) stopRunning() error {
	select {
	case <-s.proc.Done():
		return fmt.Errorf("PostgreSQL had ended by itself (%v): %s", s.proc.Err(), s.proc.Tail()) //nolint:errorlint // nil after exit 0
	default:
		return s.down(syscall.SIGINT, stopTimeout)
	}
}

// down sends a signal to the server, if it runs, and waits until it is gone.
func (s *Server) down(signal os.Signal, timeout time.Duration) error {
	if s.proc == nil {
		return nil
	}
	p := s.proc
	s.proc = nil
	return p.Stop(signal, timeout)
}

func (s *Server) boot(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureCluster(ctx); err != nil {
		return err
	}
	var err error
	if s.password, err = s.store.password(); err != nil {
		return err
	}
	return s.launchOnFreePort(ctx)
}

// launchOnFreePort tries again when another process takes the port between the choice and the server's bind.
func (s *Server) launchOnFreePort(ctx context.Context) error {
	var err error
	for range portAttempts {
		if s.port, err = FreePort(); err != nil {
			return err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// launch starts the server process and waits until it answers. The server of a run that has just been killed still has the
// data for as long as its shutdown takes.
func (s *Server) launch(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	for {
		err := s.tryLaunch(ctx)
		if !errors.Is(err, errDataInUse) {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-patience.Done():
			return err
		}
	}
}

func (s *Server) tryLaunch(ctx context.Context) error {
	p, err := s.run("postgres", s.arguments()...)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := waitReady(ctx, s.URL(superuser), p); err != nil {
		_ = p.Stop(syscall.SIGQUIT, killTimeout) // the error that matters is the one that it failed with
		return fmt.Errorf("start PostgreSQL %s on port %d, data directory %s: %w", s.install.version, s.port, s.store.base, err)
	}
	s.proc = p
	return nil
}
