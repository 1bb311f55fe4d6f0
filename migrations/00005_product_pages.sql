-- list-products pages by the bytes of the sku, which the primary key, in the database's collation, cannot serve.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '10min';
DROP INDEX CONCURRENTLY IF EXISTS products_tenant_id_sku_bytes_idx; -- an invalid one, of a run that was killed
CREATE INDEX CONCURRENTLY products_tenant_id_sku_bytes_idx ON products (tenant_id, sku COLLATE "C");
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY products_tenant_id_sku_bytes_idx;
