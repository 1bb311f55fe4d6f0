-- The database roles of the service. An administrator runs this script once, connected to the service's database and
-- before the first migration; it is idempotent. It sets no passwords: see docs/operations/roles.md.
--
--   orders_owner    runs the migrations; owns the database and everything in it
--   orders_app      no login; the group that gets the privileges of migrations/privileges.sql
--   orders_service  the login of the API and the worker; a member of orders_app

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
    -- No other role may connect. The service may not create temporary tables, which could shadow the real ones.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO orders_app', current_database());
END
$$;

ALTER ROLE orders_owner LOGIN;
ALTER ROLE orders_service LOGIN;
GRANT orders_app TO orders_service;

-- In databases created by PostgreSQL 14 or older, every role may create tables in this schema.
ALTER SCHEMA public OWNER TO orders_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO orders_app;

-- The defaults of DB_LOCK_TIMEOUT, DB_STATEMENT_TIMEOUT and DB_IDLE_TX_TIMEOUT. A process sets its own values when it
-- connects. Behind a pooler (DB_POOLER) it sets them per transaction, and these defaults apply outside of transactions.
ALTER ROLE orders_service SET lock_timeout = '5s';
ALTER ROLE orders_service SET statement_timeout = '15s';
ALTER ROLE orders_service SET idle_in_transaction_session_timeout = '30s';
