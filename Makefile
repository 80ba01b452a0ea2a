# Run make without a target for the list.

GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
PACKAGES ?= ./...
SEEDS    ?= 10000

.DEFAULT_GOAL := help

.PHONY: help
help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the program into bin/tally
	go build -o bin/tally ./cmd/tally

.PHONY: demo
demo: ## the whole job on generated streams, with no set-up (ARGS=...)
	TALLY_TEST_DATABASE_URL= testenv/scripts/ensure-postgres.sh
	go run ./cmd/tally demo $(ARGS)

.PHONY: test
test: ## run the tests on a real Postgres, installing one where none is found
	testenv/scripts/test.sh -timeout 20m $(ARGS) $(PACKAGES)

.PHONY: test-race
test-race: ## the same with the race detector
	testenv/scripts/test.sh -timeout 30m -race $(ARGS) $(PACKAGES)

.PHONY: test-pooler
test-pooler: ## the tests that reach Postgres as the program does, through PgBouncer
	TALLY_TEST_POOLER=1 testenv/scripts/test.sh -timeout 20m $(ARGS) ./store/... ./reconcile/... \
		./cmd/tally/...

.PHONY: test-long
test-long: ## random histories over many seeds (SEEDS=10000), faults at full size
	TALLY_LONG=1 TALLY_SEEDS=$(SEEDS) testenv/scripts/test.sh -timeout 6h $(ARGS) $(PACKAGES)

.PHONY: bench
bench: ## throughput, latency and write cost against the COPY floor (ARGS=...)
	testenv/scripts/ensure-postgres.sh
	go run ./cmd/tally bench $(ARGS)

.PHONY: torture
torture: ## the crash lab over 200 seeds: every step, every way to break it (ARGS=...)
	testenv/scripts/ensure-postgres.sh
	go build -o bin/tally ./cmd/tally
	bin/tally torture $(ARGS)

.PHONY: lint
lint: ## formatting, vet and linters
	go vet $(PACKAGES)
	$(GOLANGCI) run $(PACKAGES)

.PHONY: fmt
fmt: ## rewrite the sources as the linters want them formatted
	$(GOLANGCI) fmt $(PACKAGES)

.PHONY: check
check: lint test-race ## what a change must pass
