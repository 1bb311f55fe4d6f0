-- Checks the rows that were there before 00007, while reads and writes go on.

-- +goose Up
ALTER TABLE idempotency_keys VALIDATE CONSTRAINT idempotency_keys_key_printable;

-- +goose Down
-- A valid constraint needs no undoing: the Down of 00007 drops it.
SELECT 1;
