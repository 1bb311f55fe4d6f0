package migrations

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
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

// locked runs statements in a transaction while it holds the lock of the migrations: PostgreSQL refuses to change the
// privileges of one table twice at once. The lock is asked for again and again, not waited for: a statement that waits has a
// snapshot, for which a CREATE INDEX CONCURRENTLY of the lock's holder would wait in its turn.
func locked(ctx context.Context, db *sql.DB, statements string) (err error) {
	locker, err := sessionLocker()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := locker.SessionLock(ctx, conn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locker.SessionUnlock(context.WithoutCancel(ctx), conn)) }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, statements); err != nil {
		_ = tx.Rollback() // where that fails the connection is gone, and the transaction with it
		return err
	}
	return tx.Commit()
}
