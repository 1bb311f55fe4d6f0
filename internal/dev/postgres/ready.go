package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/orders/internal/dev/child"
)

var (
	errPortTaken = errors.New("the port is already in use")
	errDataInUse = errors.New("already in use by another `make run`; where there is none, remove pgdata/postmaster.pid")
)

const (
	pollEvery   = 20 * time.Millisecond
	pingTimeout = 2 * time.Second
)

// waitReady polls, since the server has no other portable way to tell that it takes connections.
func waitReady(ctx context.Context, url string, p *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ping(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return earlyEnd(p)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %w: %s", ctx.Err(), err, p.Tail())
		case <-tick.C:
		}
	}
}

func ping(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var one int
	return conn.QueryRow(ctx, "select 1").Scan(&one)
}

// earlyEnd names the two usual reasons; for all others the server's own words have to do.
func earlyEnd(p *child.Process) error {
	log := p.Tail()
	switch {
	case strings.Contains(log, "could not bind"):
		return errPortTaken
	case strings.Contains(log, `lock file "postmaster.pid" already exists`), strings.Contains(log, "is still in use"):
		return errDataInUse
	}
	return fmt.Errorf("it ended at once (%v): %s", p.Err(), log) //nolint:errorlint // nil after exit 0
}
