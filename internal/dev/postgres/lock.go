package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// errLocked tells that the other process did not let go in time.
var errLocked = errors.New("locked by another process")

const (
	// lockWait gives the server of a run that has just been killed the time for its shutdown.
	lockWait  = 3 * time.Second
	lockEvery = 50 * time.Millisecond
)

// acquire locks a file and waits for its turn. The server inherits the lock, so it outlives a parent that was killed for as long as the
// server takes to end, and no longer: the kernel drops it with the last process that has it.
func acquire(ctx context.Context, path string, wait time.Duration, log io.Writer) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := lockWithin(ctx, f, wait, log); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func lockWithin(ctx context.Context, f *os.File, wait time.Duration, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if !waited {
			fmt.Fprintf(log, "embedded postgres: waiting for another process that has %s\n", f.Name())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errLocked
		}
	}
}
