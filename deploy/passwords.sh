#!/bin/sh
# Sets the passwords of the roles that roles.sql has made. PostgreSQL's image runs it after that, when it makes the
# database; psql quotes what it is handed.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
    -v owner="$ORDERS_OWNER_PASSWORD" -v service="$ORDERS_SERVICE_PASSWORD" <<'SQL'
ALTER ROLE orders_owner PASSWORD :'owner';
ALTER ROLE orders_service PASSWORD :'service';
SQL
