-- Orders and their payments: two aggregates, so that a charge that succeeds and its refunds leave a customer's version of
-- the order as it is. A declined charge cancels the order, and so makes it stale.

-- +goose Up
CREATE TABLE orders (
    tenant_id           text        NOT NULL,
    id                  uuid        NOT NULL, -- version 7, made by the application: sorts by time of placing
    customer_id         text        NOT NULL, -- the actor that placed it
    status              text        NOT NULL CHECK (status IN ('open', 'shipped', 'cancelled')),
    total_amount        bigint      NOT NULL CHECK (total_amount >= 0),
    currency            text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    ship_name           text        NOT NULL,
    ship_line1          text        NOT NULL,
    ship_line2          text        NOT NULL, -- empty: none
    ship_city           text        NOT NULL,
    ship_postal_code    text        NOT NULL,
    ship_country        text        NOT NULL,
    carrier             text,
    tracking_number     text,
    shipped_at          timestamptz,
    cancellation_reason text,
    cancelled_at        timestamptz,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    version             bigint      NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant_id, id),
    -- An order is shipped exactly when it has a shipment, and cancelled exactly when it has a cancellation.
    CHECK ((status = 'shipped') = (shipped_at IS NOT NULL)),
    CHECK ((shipped_at IS NULL) = (carrier IS NULL) AND (shipped_at IS NULL) = (tracking_number IS NULL)),
    CHECK ((status = 'cancelled') = (cancelled_at IS NOT NULL)),
    CHECK ((cancelled_at IS NULL) = (cancellation_reason IS NULL))
);

-- The pages of list-orders: a customer's own orders, newest first.
CREATE INDEX ON orders (tenant_id, customer_id, id DESC);

CREATE TABLE order_lines (
    tenant_id   text   NOT NULL,
    order_id    uuid   NOT NULL,
    line_no     int    NOT NULL, -- 0, 1, …: the order in which they were asked for
    sku         text   NOT NULL,
    name        text   NOT NULL, -- as the catalogue had it when the order was placed
    quantity    bigint NOT NULL CHECK (quantity > 0),
    unit_amount bigint NOT NULL CHECK (unit_amount >= 0), -- in the order's currency
    PRIMARY KEY (tenant_id, order_id, line_no),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id)
);

CREATE TABLE payments (
    tenant_id      text        NOT NULL,
    order_id       uuid        NOT NULL,
    status         text        NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed', 'unresolved', 'canceled')),
    amount         bigint      NOT NULL CHECK (amount >= 0),
    currency       text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    payment_method text        NOT NULL, -- the provider's token, never card data
    charge_id      text        NOT NULL, -- the provider's id of the charge; empty: not known
    attempted_at   timestamptz,          -- when the provider was first asked: the retry horizon counts from here
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    version        bigint      NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant_id, order_id),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CHECK (status <> 'succeeded' OR charge_id <> '')
);

-- What reconcile-payments looks through: few rows at any time.
CREATE INDEX ON payments (updated_at) WHERE status IN ('pending', 'unresolved');

CREATE TABLE refunds (
    tenant_id    text        NOT NULL,
    order_id     uuid        NOT NULL,
    id           uuid        NOT NULL,
    amount       bigint      NOT NULL CHECK (amount > 0), -- in the payment's currency
    status       text        NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    reason       text        NOT NULL, -- empty: none given
    attempted_at timestamptz,          -- when the provider was first asked
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, order_id, id),
    FOREIGN KEY (tenant_id, order_id) REFERENCES payments (tenant_id, order_id)
);

CREATE INDEX ON refunds (created_at) WHERE status = 'pending';

-- +goose Down
DROP TABLE refunds;
DROP TABLE payments;
DROP TABLE order_lines;
DROP TABLE orders;
