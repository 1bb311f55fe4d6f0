-- The catalogue and its stock: two aggregates, so that a sale never makes an editor's version of a price stale.
--
-- Conventions of this schema: tenant_id leads every key, so that it can be distributed by tenant one day; ids and
-- times come from the application; no serials, no triggers, no defaults that hide a value. Every aggregate carries
-- a version, which starts at 1 and which each save compares and advances.

-- +goose Up
CREATE TABLE products (
    tenant_id      text        NOT NULL,
    sku            text        NOT NULL,
    name           text        NOT NULL,
    price_amount   bigint      NOT NULL CHECK (price_amount > 0), -- minor units
    price_currency text        NOT NULL CHECK (price_currency ~ '^[A-Z]{3}$'),
    active         boolean     NOT NULL,                           -- false: not for sale, still readable
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    version        bigint      NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant_id, sku)
);

CREATE TABLE stock (
    tenant_id  text        NOT NULL,
    sku        text        NOT NULL,
    on_hand    bigint      NOT NULL CHECK (on_hand >= 0), -- units; the last net under the domain's own check
    updated_at timestamptz NOT NULL,
    version    bigint      NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant_id, sku),
    FOREIGN KEY (tenant_id, sku) REFERENCES products (tenant_id, sku)
);

-- +goose Down
DROP TABLE stock;
DROP TABLE products;
