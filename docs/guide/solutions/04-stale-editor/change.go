//go:build exercise

// Package exercise changes orders under the version that the caller saw.
package exercise

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrVersionConflict says that the order has changed since the version that the caller saw.
var ErrVersionConflict = errors.New("the order has changed")

// Schema is the table of orders.
const Schema = `
CREATE TABLE orders (
	id      int  PRIMARY KEY,
	address text NOT NULL,
	status  text NOT NULL,
	version int  NOT NULL
);`

// ChangeAddress sends an order elsewhere. seen is the version that the caller read.
func ChangeAddress(ctx context.Context, db *pgxpool.Pool, id, seen int, to string) error {
	return change(ctx, db, `UPDATE orders SET address = $3, version = version + 1 WHERE id = $1 AND version = $2`, id, seen, to)
}

// Ship notes that the parcel left, for the address that the caller read at version seen.
func Ship(ctx context.Context, db *pgxpool.Pool, id, seen int) error {
	return change(ctx, db, `UPDATE orders SET status = 'shipped', version = version + 1 WHERE id = $1 AND version = $2`, id, seen)
}

// change compares and writes in one statement: one that waits for the row looks at the version again when it gets it.
func change(ctx context.Context, db *pgxpool.Pool, update string, arguments ...any) error {
	changed, err := db.Exec(ctx, update, arguments...)
	if err == nil && changed.RowsAffected() == 0 {
		return ErrVersionConflict
	}
	return err
}
