#!/usr/bin/env bash
# axe.sh: gets axe-core, which checks pages for accessibility, out of an npm package, into a cache, and prints its path:
#
#   AXE=$(scripts/axe.sh) go -C browser test ./...
#
# Without npm it prints nothing and says so: the tests then go on without it.
set -euo pipefail
VERSION=4.14.1
SHA256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
cache=${AXE_CACHE:-${TMPDIR:-/tmp}/orders-axe-$VERSION}
axe=$cache/package/axe.min.js
if [ ! -f "$axe" ]; then
  command -v npm >/dev/null || { echo "axe.sh: npm is not installed: accessibility is not checked" >&2; exit 0; }
  mkdir -p "$cache"
  (cd "$cache" && npm pack --silent "axe-core@$VERSION" >/dev/null && tar xzf "axe-core-$VERSION.tgz" package/axe.min.js)
fi
echo "$SHA256  $axe" | sha256sum --check --quiet >&2 || { echo "axe.sh: $axe is not axe-core $VERSION" >&2; exit 1; }
echo "$axe"
