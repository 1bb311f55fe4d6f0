#!/usr/bin/env bash
# Renames a scratch copy of this repository as a new owner would, and requires that the copy passes lint, its fast tests and
# an end-to-end test. The program itself fails where a line still names the old service.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ $(head -n 1 go.mod) == 'module example.com/orders' ]] || { echo "renamed already: nothing to check"; exit 0; }
source scripts/scratch.sh

# refused ARGUMENT...: make rename must end with one line and change nothing.
refused() {
	local status=0 lines
	lines=$(bin/rename "$@" 2>&1) || status=$?
	((status == 2)) && [[ $lines == rename:* && $lines != *$'\n'* && -z $(git status --porcelain) ]] ||
		{ echo "rename $*: status $status: $lines" >&2; exit 1; }
	echo "refused: $lines"
}

go build -o bin/rename ./scripts/rename
refused
refused -module github.com/acme/billing
refused -module billing -name billing
refused -module github.com/acme/billing/ -name billing
refused -module 'github.com/acme/bil ling' -name billing
refused -module example.com/orders -name billing
for name in 1billing Billing bil_ling billing- bil--ling "bil'ling" orders postgres pg-x "$(printf 'a%.0s' {1..41})"; do
	refused -module github.com/acme/billing -name "$name"
done
refused -module github.com/acme/billing -name billing -host 'billing'
touch changed
status=0
lines=$(bin/rename -module github.com/acme/billing -name billing 2>&1) || status=$?
[[ $status == 2 && $lines == *'not committed'* ]] || { echo "a dirty tree: status $status: $lines" >&2; exit 1; }
rm changed

make rename MODULE=github.com/acme/store-billing NAME=store-billing
status=0
lines=$(bin/rename -module github.com/acme/other -name other 2>&1) || status=$?
[[ $status == 2 && $lines == *'already renamed'* ]] || { echo "a second rename: status $status: $lines" >&2; exit 1; }

! git grep -n orders -- deploy/kubernetes || { echo "deploy/kubernetes still names the old service" >&2; exit 1; }

make lint # go vet, and the layers, among all else
(cd ops && go vet ./... && go test ./...)
(cd browser && go vet ./...)
go test ./api ./docs ./deploy ./internal/app ./internal/domain ./internal/httpapi ./migrations
go test ./internal/e2e -run '^TestPlaceOrderIsPlacedAndPaidOnce$'
make check-generate
echo "the renamed copy passes"
