-- What the service promised to answer to the retry of an accepted request. A row is written in the transaction of
-- the change that it describes, and in no other: a crash before the commit leaves neither.

-- +goose Up
CREATE TABLE idempotency_keys (
    -- The scope of a client key: two tenants, two actors or two operations never share one.
    tenant_id        text        NOT NULL,
    actor_id         text        NOT NULL,
    operation        text        NOT NULL,
    key              text        COLLATE "C" NOT NULL CHECK (key ~ '^[\x21-\x7e]{1,255}$'), -- as sent, compared byte for byte

    -- SHA-256 of the canonical command, the route and the actor. Only the hash is stored, not the request.
    fingerprint      bytea       NOT NULL CHECK (length(fingerprint) = 32),

    -- claimed: a transaction is at work on it; other transactions never see this state, since the same transaction
    -- goes on to complete it or rolls back. completed: the response below is what a retry gets.
    state            text        NOT NULL CHECK (state IN ('claimed', 'completed')),

    -- The accepted response, as opaque bytes (a json type would reorder them). Only 2xx is ever stored.
    response_status  int         CHECK (response_status BETWEEN 200 AND 299),
    response_headers bytea,      -- the headers that the use-case record declares, as the boundary encoded them
    response_body    bytea,

    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL CHECK (expires_at > created_at), -- set from IDEMPOTENCY_KEY_RETENTION

    -- This unique index lets one of two concurrent requests insert; the other waits for it here.
    PRIMARY KEY (tenant_id, actor_id, operation, key),
    CHECK ((state = 'completed') = (response_status IS NOT NULL AND response_headers IS NOT NULL AND response_body IS NOT NULL))
);

-- The order in which purge-idempotency-keys removes records.
CREATE INDEX ON idempotency_keys (expires_at);

-- +goose Down
DROP TABLE idempotency_keys;
