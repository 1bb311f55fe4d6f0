package migrations

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// undefinedTable is PostgreSQL's SQLSTATE for a table that is not there.
const undefinedTable = "42P01"

// State is a migration that this binary knows.
type State struct {
	Version int64
	Name    string
	Applied time.Time // zero: pending
}

// Status tells of every migration that this binary knows whether the database has it. It only reads, and it does not
// wait for a process that migrates; goose's own status does both otherwise.
func Status(ctx context.Context, pool *pgxpool.Pool) ([]State, error) {
	applied, err := applied(ctx, pool)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	var list []State
	for _, s := range p.ListSources() {
		name := path.Base(s.Path)
		if s.Path == "" {
			name = "River's tables"
		}
		list = append(list, State{Version: s.Version, Name: name, Applied: applied[s.Version]})
	}
	return list, nil
}

// Pending reports whether the database lacks a migration that this binary knows. Migrations that only a newer binary
// knows do not matter: an old one goes on working beside it.
func Pending(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	list, err := Status(ctx, pool)
	for _, s := range list {
		if s.Applied.IsZero() {
			return true, nil
		}
	}
	return false, err
}

// applied is when each migration was applied, by version. A database without goose's table has none.
func applied(ctx context.Context, pool *pgxpool.Pool) (map[int64]time.Time, error) {
	rows, _ := pool.Query(ctx, `SELECT version_id, tstamp FROM goose_db_version WHERE is_applied`)
	times := map[int64]time.Time{}
	var version int64
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&version, &at}, func() error { times[version] = at; return nil })
	var missing *pgconn.PgError
	if errors.As(err, &missing) && missing.Code == undefinedTable {
		return times, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	return times, nil
}
