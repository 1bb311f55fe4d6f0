package migrations

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/pressly/goose/v3/lock"
)

//go:embed privileges.sql
var privileges string

// grant gives the service's group of roles its privileges. It does nothing in a database whose server has no such
// group, where everything runs as one role.
func grant(ctx context.Context, db *sql.DB) error {
	var separate bool
	err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'orders_app')`).Scan(&separate)
	if err == nil && separate {
		err = locked(ctx, db, privileges)
	}
	if err != nil {
		return fmt.Errorf("grant privileges: %w", err)
	}
	return nil
}

// locked runs statements in a transaction that holds the lock of the migrations: PostgreSQL refuses to change the
// privileges of one table twice at once.
func locked(ctx context.Context, db *sql.DB, statements string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, lock.DefaultLockID)
	if err == nil {
		_, err = tx.ExecContext(ctx, statements)
	}
	if err != nil {
		_ = tx.Rollback() // where that fails the connection is gone, and the transaction with it
		return err
	}
	return tx.Commit()
}
