//go:build exercise

// Package exercise places orders once for each key, whoever comes when.
package exercise

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema lets a key be claimed before its order is known. No transaction commits it without one.
const Schema = `
CREATE TABLE orders (
	id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	sku text   NOT NULL
);
CREATE TABLE keys (
	key      text   PRIMARY KEY,
	order_id bigint
);`

// Place places an order and returns its id. The claim comes first: a duplicate waits on the unique index until the winner has
// ended, and then reads what the winner committed, or claims the key itself.
func Place(ctx context.Context, db *pgxpool.Pool, key, sku string) (id int64, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		claimed, err := tx.Exec(ctx, `INSERT INTO keys (key) VALUES ($1) ON CONFLICT DO NOTHING`, key)
		if err != nil {
			return err
		}
		if claimed.RowsAffected() == 0 {
			return tx.QueryRow(ctx, `SELECT order_id FROM keys WHERE key = $1`, key).Scan(&id)
		}
		if err := tx.QueryRow(ctx, `INSERT INTO orders (sku) VALUES ($1) RETURNING id`, sku).Scan(&id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE keys SET order_id = $2 WHERE key = $1`, key, id)
		return err
	})
	return id, err
}
