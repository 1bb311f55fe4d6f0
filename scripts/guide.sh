#!/usr/bin/env bash
# Checks the exercises of docs/guide: without its solution the test of each fails, and with it the test passes. The solution
# takes the place of the naive file while the go command builds (-overlay): the tree is not touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

go vet -tags exercise ./docs/guide/exercises/...
for exercise in docs/guide/exercises/*/; do
	name=$(basename "$exercise")
	if go test -count=1 -tags exercise "./$exercise" >"$dir/naive" 2>&1; then
		echo "$name: the naive program passes its test" >&2
		exit 1
	fi
	grep -q -e '^--- FAIL: Test' "$dir/naive" || { cat "$dir/naive" >&2; exit 1; }
	{
		printf '{"Replace":{'
		separator=''
		for solution in "docs/guide/solutions/$name"/*.go; do
			printf '%s"%s":"%s"' "$separator" "$PWD/$exercise$(basename "$solution")" "$PWD/$solution"
			separator=,
		done
		printf '}}'
	} >"$dir/overlay.json"
	go test -count=1 -tags exercise -overlay "$dir/overlay.json" "./$exercise" || { echo "$name: the solution fails" >&2; exit 1; }
done
