-- What the service may do, table by table: it reads and writes rows, and it owns nothing, so it can neither alter nor
-- drop nor truncate. orders_app is a group; a member of it (orders_service, see deploy/roles.sql) may do
-- this. A new table needs its line here: without one the service cannot see it.
--
-- Runs after the migrations, every time, as the owner of the tables, where orders_app exists. It only ever adds: a
-- privilege is taken back by a migration, once no running binary needs it any more.

GRANT SELECT, INSERT, UPDATE ON products, stock, orders, payments, refunds, reconcile_watermarks TO orders_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON unmatched_charges TO orders_app; -- DELETE: one whose order has come back
GRANT SELECT, INSERT ON order_lines TO orders_app; -- the lines of an order never change
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO orders_app; -- DELETE: purge-idempotency-keys
GRANT SELECT, INSERT, UPDATE, DELETE ON provider_events TO orders_app; -- DELETE: the same job; UPDATE: its row locks

-- River: jobs are inserted, worked and, when they are old, deleted; leaders come and go.
GRANT SELECT, INSERT, UPDATE, DELETE ON river_job, river_leader, river_notification, river_queue TO orders_app;
GRANT USAGE ON SEQUENCE river_job_id_seq, river_notification_id_seq TO orders_app;

-- /readyz compares the schema with what the binary knows.
GRANT SELECT ON goose_db_version, river_migration TO orders_app;
