//go:build exercise

// Package exercise places orders once for each key, as long as retries come one after another.
package exercise

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema has a table of keys beside the orders.
const Schema = `
CREATE TABLE orders (
	id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	sku text   NOT NULL
);
CREATE TABLE keys (
	key      text   PRIMARY KEY,
	order_id bigint NOT NULL
);`

// Place places an order and returns its id. Order and key are committed together or not at all.
func Place(ctx context.Context, db *pgxpool.Pool, key, sku string) (id int64, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT order_id FROM keys WHERE key = $1`, key).Scan(&id)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err := tx.QueryRow(ctx, `INSERT INTO orders (sku) VALUES ($1) RETURNING id`, sku).Scan(&id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO keys (key, order_id) VALUES ($1, $2)`, key, id)
		return err
	})
	return id, err
}
