// Package migrations holds the schema: goose SQL files and, as one Go migration, River's own tables.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// riverVersion is the version of River's schema that this code was tested with. A newer River asks for a further Go
// migration with the next version, never for an edit of the one below.
const riverVersion = 8

// Up brings the database to the newest schema. Several processes may call it at once: a session lock lets one work
// and the others find nothing left to do.
func Up(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	return UpDB(ctx, db)
}

// UpDB is Up on a database/sql handle.
func UpDB(ctx context.Context, db *sql.DB) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Pending tells whether the database lacks a migration that this binary knows.
func Pending(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := provider(db)
	if err != nil {
		return false, err
	}
	return p.HasPending(ctx)
}

func provider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(4,
			&goose.GoFunc{RunDB: riverTables(rivermigrate.DirectionUp, riverVersion)},
			&goose.GoFunc{RunDB: riverTables(rivermigrate.DirectionDown, -1)},
		)),
	)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

func riverTables(d rivermigrate.Direction, target int) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		m, err := rivermigrate.New(riverdatabasesql.New(db), nil)
		if err != nil {
			return fmt.Errorf("river migrator: %w", err)
		}
		if _, err := m.Migrate(ctx, d, &rivermigrate.MigrateOpts{TargetVersion: target}); err != nil {
			return fmt.Errorf("river tables: %w", err)
		}
		return nil
	}
}
