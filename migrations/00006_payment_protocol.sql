-- The payment protocol that rests on the provider's state: an intent is created unconfirmed, its id is committed, and only
-- then it is confirmed. This is the expanding half: the previous release can still run beside it.
-- docs/operations/migrations.md has the contracting half, for the release after.
--
-- What keeps an old worker beside a new one from charging or refunding twice: an old worker notes attempted_at before it
-- asks the provider. The two fences below refuse that note once a new worker has begun, so the old worker's job fails and
-- waits for a new worker. The other way round, a new worker that meets attempted_at looks at the provider first.

-- +goose Up
-- charge_id holds the id of the provider's PaymentIntent, from now on already while the payment is pending.
ALTER TABLE payments
    ADD COLUMN key_generation int  NOT NULL DEFAULT 1 CHECK (key_generation > 0), -- of the provider's idempotency key
    ADD COLUMN refusal        text NOT NULL DEFAULT '',                           -- the provider's codes; empty: none
    ADD COLUMN refused_at     timestamptz,                                        -- the first refusal
    ADD CONSTRAINT payments_begun_by_a_new_worker CHECK (status <> 'pending' OR charge_id = '' OR attempted_at IS NULL),
    ADD CHECK ((refusal = '') = (refused_at IS NULL));

ALTER TABLE refunds
    ADD COLUMN provider_id    text NOT NULL DEFAULT '', -- the provider's id of the refund; empty: not known
    ADD COLUMN key_generation int  NOT NULL DEFAULT 0 CHECK (key_generation >= 0), -- 0: no new worker has asked yet
    ADD COLUMN key_failed_at  timestamptz,              -- when the provider last answered that a key is not usable
    ADD COLUMN refusal        text NOT NULL DEFAULT '',
    ADD COLUMN refused_at     timestamptz,
    ADD CONSTRAINT refunds_begun_by_a_new_worker CHECK (key_generation = 0 OR attempted_at IS NULL),
    ADD CHECK ((refusal = '') = (refused_at IS NULL));

-- The ids of the provider events that were received: of two deliveries of one event the primary key admits one.
CREATE TABLE provider_events (
    tenant_id   text        NOT NULL, -- of the order that the event is about; empty: of none
    event_id    text        NOT NULL,
    type        text        NOT NULL,
    received_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > received_at), -- set from PROVIDER_EVENT_RETENTION
    PRIMARY KEY (tenant_id, event_id)
);

CREATE INDEX ON provider_events (expires_at);

-- Money that the provider holds and that no payment accounts for: a second charge of an order, or the charge of an order
-- that is not here (lost in a restore). A row stays for good: it explains the refund.
CREATE TABLE unmatched_charges (
    tenant_id      text        NOT NULL,
    intent_id      text        NOT NULL,
    order_id       uuid        NOT NULL, -- from the intent's metadata; there may be no such order
    kind           text        NOT NULL CHECK (kind IN ('second_charge', 'unknown_charge')),
    amount         bigint      NOT NULL CHECK (amount > 0),
    currency       text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    key_generation int         NOT NULL CHECK (key_generation > 0), -- of the idempotency key of its refund
    refund_id      text        NOT NULL, -- the provider's refund that gave it back; empty: not yet
    created_at     timestamptz NOT NULL,
    returned_at    timestamptz,
    PRIMARY KEY (tenant_id, intent_id),
    CHECK ((refund_id = '') = (returned_at IS NULL))
);

CREATE INDEX ON unmatched_charges (created_at) WHERE returned_at IS NULL;

-- How far reconcile-payments has compared what the provider holds. The provider's account knows no tenants, so there is one
-- row for each stream, under the tenant ''.
CREATE TABLE reconcile_watermarks (
    tenant_id  text        NOT NULL,
    stream     text        NOT NULL,
    from_at    timestamptz,          -- what was created before has been compared; NULL: nothing has
    next_at    timestamptz,          -- what from_at becomes when the pass that is under way ends
    after_id   text        NOT NULL, -- the last object that was compared in that pass
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, stream)
);

-- +goose Down
DROP TABLE reconcile_watermarks;
DROP TABLE unmatched_charges;
DROP TABLE provider_events;
ALTER TABLE refunds DROP COLUMN provider_id, DROP COLUMN key_generation, DROP COLUMN key_failed_at, DROP COLUMN refusal,
    DROP COLUMN refused_at;
ALTER TABLE payments DROP COLUMN key_generation, DROP COLUMN refusal, DROP COLUMN refused_at;
