-- The privileges of the service, table by table. The service reads and writes rows but owns no table, so it cannot
-- ALTER, DROP or TRUNCATE. The privileges are granted to the group orders_app; the API and the worker log in as its
-- member orders_service (see deploy/roles.sql). Add a line here for every new table, or the service cannot access it.
--
-- `migrate up` runs this script as the owner after the migrations, every time, if orders_app exists. The script
-- only grants. Write a migration to revoke a privilege, once no running binary needs it.

GRANT SELECT, INSERT, UPDATE ON products, stock, orders, payments, refunds, reconcile_watermarks TO orders_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON unmatched_charges TO orders_app; -- DELETE: the order exists again
GRANT SELECT, INSERT ON order_lines TO orders_app; -- the lines of an order never change
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO orders_app; -- DELETE: purge-idempotency-keys
GRANT SELECT, INSERT, UPDATE, DELETE ON provider_events TO orders_app; -- DELETE: the same job; UPDATE: its row locks

-- River inserts, updates and deletes jobs, and elects a leader.
GRANT SELECT, INSERT, UPDATE, DELETE ON river_job, river_leader, river_notification, river_queue TO orders_app;
GRANT USAGE ON SEQUENCE river_job_id_seq, river_notification_id_seq TO orders_app;

-- /readyz compares the schema version with the one that the binary needs.
GRANT SELECT ON goose_db_version, river_migration TO orders_app;
