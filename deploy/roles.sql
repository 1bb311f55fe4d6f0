-- The roles of the service, and who owns what. An administrator runs this once, connected to the service's database
-- and before the first migration; running it again does no harm. It sets no passwords: see docs/operations/roles.md.
--
--   orders_owner    migrates: owns the database and all that is in it
--   orders_app      no login: the group that migrations/privileges.sql grants to
--   orders_service  runs the API and the worker, as a member of that group

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['orders_owner', 'orders_app', 'orders_service'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I', role);
        END IF;
    END LOOP;
    EXECUTE format('ALTER DATABASE %I OWNER TO orders_owner', current_database());
    -- No other role connects, and the service makes no temporary tables, which could hide the real ones.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO orders_app', current_database());
END
$$;

ALTER ROLE orders_owner LOGIN;
ALTER ROLE orders_service LOGIN;
GRANT orders_app TO orders_service;

-- Databases that come from PostgreSQL 14 or older let everybody create tables here.
ALTER SCHEMA public OWNER TO orders_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO orders_app;

-- The defaults of DB_LOCK_TIMEOUT, DB_STATEMENT_TIMEOUT and DB_IDLE_TX_TIMEOUT. A process sets its own when it connects;
-- behind a pooler (DB_POOLER) it cannot, and these hold for what runs outside of its transactions.
ALTER ROLE orders_service SET lock_timeout = '5s';
ALTER ROLE orders_service SET statement_timeout = '15s';
ALTER ROLE orders_service SET idle_in_transaction_session_timeout = '30s';
