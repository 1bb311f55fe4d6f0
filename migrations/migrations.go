// Package migrations holds the schema: goose SQL files, one Go migration for River's own tables, and what the service's
// role may do with them.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed 0*.sql
var files embed.FS

const (
	// riverVersion is the version of River's schema that this code was tested with. A newer River asks for a further Go
	// migration with the next version, never for an edit of the one below.
	riverVersion = 8
	// lockTries, of a second each, are more than a day: what bounds the wait for another process that migrates is the
	// caller's context.
	lockTries = 100_000
)

// Digest identifies the schema that Up makes: another migration, another version of River or another privilege gives
// another digest.
func Digest() string { return digest(files) }

// digest reads files that are part of the program, so it cannot fail.
func digest(files fs.ReadDirFS) string {
	sum := sha256.New()
	fmt.Fprintln(sum, riverVersion, privileges)
	entries, _ := files.ReadDir(".")
	for _, entry := range entries {
		raw, _ := fs.ReadFile(files, entry.Name())
		fmt.Fprintf(sum, "%s %q\n", entry.Name(), raw)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Up brings the database to the newest schema and its privileges up to date. Several processes may call it at once: a
// session lock lets one work, and the others wait for it and find nothing left to do.
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
	return grant(ctx, db)
}

func provider(db *sql.DB) (*goose.Provider, error) {
	locker, err := sessionLocker()
	if err != nil {
		return nil, err
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

// sessionLocker takes the lock of the migrations, which PostgreSQL gives to one session at a time.
func sessionLocker() (lock.SessionLocker, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockTries))
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	return locker, nil
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
