// Package exercise changes orders, naively. Its tests fail until you have solved it: see docs/guide/4-two-editors.md.
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
	if err := compare(ctx, db, id, seen); err != nil {
		return err
	}
	_, err := db.Exec(ctx, `UPDATE orders SET address = $2, version = version + 1 WHERE id = $1`, id, to)
	return err
}

// Ship notes that the parcel left, for the address that the caller read at version seen.
func Ship(ctx context.Context, db *pgxpool.Pool, id, seen int) error {
	if err := compare(ctx, db, id, seen); err != nil {
		return err
	}
	_, err := db.Exec(ctx, `UPDATE orders SET status = 'shipped', version = version + 1 WHERE id = $1`, id)
	return err
}

func compare(ctx context.Context, db *pgxpool.Pool, id, seen int) error {
	var stored int
	if err := db.QueryRow(ctx, `SELECT version FROM orders WHERE id = $1`, id).Scan(&stored); err != nil {
		return err
	}
	if stored != seen {
		return ErrVersionConflict
	}
	return nil
}
