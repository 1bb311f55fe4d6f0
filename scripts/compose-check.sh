#!/usr/bin/env bash
# compose-check.sh: runs docker-compose.yml with two APIs and two workers, as a project of its own on free ports; places an
# order, sees it paid, kills a worker in the middle of a charge and sees the other one take over; then removes it all.
# Says so and succeeds where there is no Docker engine. REQUIRE_ENGINE=1 makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "compose-check: $*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

if ! { docker info && docker compose version; } >/dev/null 2>&1; then
  say "skipped: no Docker engine with Compose v2 answers on this machine"
  exit "${REQUIRE_ENGINE:-0}"
fi

export COMPOSE_PROJECT_NAME=orders-check-$$ COMPOSE_PROGRESS=quiet DOCKER_CLI_HINTS=false
export API_PORTS='' API_OPS_PORTS='' WORKER_OPS_PORTS='' SANDBOX_PORT='' # free ones
# A worker that dies in a call is missed after JOB_RESCUE_AFTER, and at the latest half a minute later.
export PROVIDER_TIMEOUT=15s JOB_TIMEOUT=16s JOB_RESCUE_AFTER=17s

finish() {
  local status=$?
  [ "$status" = 0 ] || docker compose logs --tail 40 >&2 || true
  docker compose down -v --remove-orphans --timeout 30 >/dev/null 2>&1 || true
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# eventually SECONDS WHAT COMMAND...: the command succeeds within the time
eventually() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || fail "$what"
    sleep 0.2
  done
}

member() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; } # of a JSON object on one line
request() { curl -sS --max-time 40 "$@"; }
address() { docker compose port --index "$2" "$1" "$3"; }
sql() { docker compose exec -T postgres psql -qAtX -U postgres -d orders -c "$1"; }
status_of() { request -H "Authorization: Bearer $token" "$api1/v1/orders/$1/payment" | member status; }
paid() { [ "$(status_of "$1")" = succeeded ]; }
charges() { request "$sandbox/ledger" | grep -o "\"order_id\":\"$1\",\"amount\":[0-9]*,\"currency\":\"EUR\",\"status\":\"succeeded\"" | wc -l; }
body='{"currency":"EUR","lines":[{"sku":"TEA-001","quantity":2}],"payment_method":"pm_card_visa","shipping_address":{"name":"Alice Ames","line1":"1 High Street","city":"Berlin","postal_code":"10115","country":"DE"}}'
place() { # place API KEY: the answer with its headers
  request -i "$1/v1/orders" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
    -H "Idempotency-Key: $2" -d "$body"
}

say "building the images"
timeout 1500 docker compose build >/dev/null || fail "the images do not build"
say "starting two APIs and two workers"
timeout 300 docker compose up -d --wait --scale api=2 --scale worker=2 >/dev/null || fail "the services do not become healthy"
docker compose ps --format '{{.Name}} {{.Status}} {{.Ports}}'

api1=http://$(address api 1 8080) api2=http://$(address api 2 8080) sandbox=http://$(address sandbox 1 8089)
token=$(request "$sandbox/token" -d '{"sub":"alice","tenant":"default","scope":"orders:read orders:write"}' | member access_token)
[ -n "$token" ] || fail "no token"

say "an order, and its retry at the other API"
first=$(place "$api1" first)
order=$(echo "$first" | member id)
[ -n "$order" ] || fail "not placed: $first"
again=$(place "$api2" first)
[ "$(echo "$again" | member id)" = "$order" ] || fail "placed twice: $again"
echo "$again" | grep -qi '^idempotent-replayed: true' || fail "not a replay: $again"
eventually 60 "the order is not paid" paid "$order"
[ "$(charges "$order")" = 1 ] || fail "charged $(charges "$order") times"

say "a worker is killed between the provider's charge and its own commit"
request -X PUT "$sandbox/faults" -d '{"rules":[{"operation":"charge","kind":"hold","times":1}]}' >/dev/null
order=$(place "$api1" second | member id)
charged() { [ "$(charges "$order")" = 1 ]; }
eventually 15 "the provider is not asked" charged
victim=$(sql "SELECT split_part(attempted_by[array_upper(attempted_by, 1)], '_', 1) FROM river_job WHERE state = 'running' AND kind = 'charge-order'")
[ "$(docker inspect -f '{{index .Config.Labels "com.docker.compose.service"}}' "$victim")" = worker ] || fail "no worker is at work: '$victim'"
docker kill -s KILL "$victim" >/dev/null
[ "$(status_of "$order")" = pending ] || fail "the payment is $(status_of "$order") before another worker took over"
killed=$SECONDS
eventually 120 "no worker takes over" paid "$order"
say "the other worker took over after $((SECONDS - killed)) s"
[ "$(charges "$order")" = 1 ] || fail "charged $(charges "$order") times"

say "what the containers may not do"
for service in api worker sandbox; do
  id=$(docker compose ps -q "$service" | head -1)
  docker inspect -f '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.Config.User}}' "$id" |
    grep -q '^true \[ALL\] \[no-new-privileges:true\] 65532:65532$' || fail "$service is not hardened: $(docker inspect -f '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.Config.User}}' "$id")"
  ! docker compose exec -T "$service" sh -c true >/dev/null 2>&1 || fail "$service has a shell"
done
! docker compose ps --format '{{.Ports}}' | grep -q '0\.0\.0\.0:[0-9]*->\|\[::\]' || fail "a port is open to the network"
refused=$(docker compose exec -T postgres psql -X -U postgres -d orders -c 'SET ROLE orders_service' -c 'DROP TABLE orders' 2>&1 || true)
echo "$refused" | grep -q 'must be owner' || fail "the service's role may drop tables: $refused"

say "stopping in good order"
docker compose stop --timeout 30 api worker >/dev/null 2>&1
for id in $(docker compose ps -aq api worker); do
  code=$(docker inspect -f '{{.State.ExitCode}}' "$id")
  [ "$code" = 0 ] || [ "${id#"$victim"}" != "$id" ] || fail "$(docker inspect -f '{{.Name}}' "$id") ended with status $code"
done
docker image ls --format '{{.Repository}} {{.Size}}' | grep '^orders-' | sort -u
say "passed"
