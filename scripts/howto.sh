#!/usr/bin/env bash
# Follows pages of docs/how-to as a reader would, each in a scratch copy of this repository: applies every diff and runs every
# command, in their order. Without arguments: all pages that have a diff.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t pages < <((($#)) && printf '%s\n' "$@" || grep -l '^```diff' docs/how-to/*.md)
source scripts/scratch.sh

# perform PAGE KIND TEXT: one block of a page.
perform() {
	case $2 in
	diff) git apply --whitespace=nowarn - <<<"$3" || { echo "$1: a diff does not apply any more: $(grep -m 1 '^+++' <<<"$3")" >&2; return 1; } ;;
	sh) echo "$3" && bash -euo pipefail -c "$3" </dev/null || { echo "$1: a command failed" >&2; return 1; } ;;
	esac
}

for page in "${pages[@]}"; do
	git reset -q --hard
	git clean -qfd
	kind='' block=''
	while IFS= read -r line; do
		case $kind:$line in
		:'```diff' | :'```sh') kind=${line#'```'} block='' ;;
		?*:'```')
			perform "$page" "$kind" "${block%$'\n'}"
			kind=''
			;;
		?*:*) block+=$line$'\n' ;;
		:'## '*) printf '\n%s: %s (%d s)\n' "$page" "${line#'## '}" "$SECONDS" ;;
		esac
	done <"$OLDPWD/$page"
	git add -A
	printf '\n%s: done after %d s, %d files by hand\n' "$page" "$SECONDS" "$(grep -h '^+++ b/' "$OLDPWD/$page" | sort -u | wc -l)"
done
