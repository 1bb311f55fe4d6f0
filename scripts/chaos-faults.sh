#!/usr/bin/env bash
# Shows that the checkers can lose: plants each fault of internal/chaos/faults in a copy of the repository and requires that
# what its patch names finds it. Usage: scripts/chaos-faults.sh [FAULT...]; SEED (12) and SECONDS_EACH (20) may be set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
faults=internal/chaos/faults
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
missed=0

# finder FAULT: runs what is to find the fault, in the copy.
finder() {
	local kind package test
	read -r kind package test < <(sed -n 's/^found by: //p' "$faults/$1.patch")
	if [[ $kind == chaos ]]; then
		make -C "$copy" chaos SECONDS="${SECONDS_EACH:-20}" SEED="${SEED:-12}"
	else
		(cd "$copy" && go test "$package" -count=1 -run "$test")
	fi
}

(($# > 0)) || set -- $(basename -s .patch -a "$faults"/*.patch)
for fault; do
	from=$SECONDS
	rm -rf "${copy:?}"/*
	git ls-files -z | xargs -0 cp --parents -t "$copy"
	patch --quiet --directory="$copy" --strip=1 <"$faults/$fault.patch"
	(cd "$copy" && go build ./...)
	if finder "$fault" >"$copy/out" 2>&1; then
		grep -A 2 'chaos_test.go:.* operations' "$copy/out" || true
		echo "$fault: NOT FOUND in $((SECONDS - from)) s"
		missed=1
	else
		echo "$fault: found in $((SECONDS - from)) s by $(sed -n 's/^found by: //p' "$faults/$fault.patch")"
		grep -E '^ +chaos_test.go:[0-9]+: +[0-9.]+ s: |--- FAIL|Error:|chaos_test.go.*(not linearizable)' "$copy/out" | head -n 3 | cut -c1-200 || true
	fi
done
exit $missed
