# Each target is one line of the scripts beside this file, so that a machine
# without make can do the same: script/test.sh, script/demo.sh and so on.

.DEFAULT_GOAL := help
.PHONY: help setup build run test lint fmt tidy fuzz dictionary bench clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## install what tests need and this machine lacks
	script/setup.sh test

build: ## build bin/umavez
	go build -o bin/umavez ./cmd/umavez

run: ## the demo: umavez serve on SQLite in front of a small upstream
	script/demo.sh

test: ## everything: format, vet, lint, all modules' tests, fuzz targets
	script/test.sh

lint: ## format check, vet, go.mod check and linters in every module
	script/lint.sh

fmt: ## format every file
	script/lint.sh --fix

tidy: ## bring every go.mod and go.sum up to date
	for module in $$(script/modules.sh); do (cd $$module && GOWORK=off go mod tidy) || exit; done

fuzz: ## every fuzz target for FUZZTIME (default 30s)
	script/fuzz.sh

dictionary: ## the attack on a sealed file, with 10,000,000 card numbers (CANDIDATES)
	cd store/sqlitestore && UMAVEZ_DICTIONARY=$(or $(CANDIDATES),10000000) go test -run='^TestDictionary$$' -count=1 -v -timeout 60m .

bench: ## benchmarks against peers and bare limits, for benchstat
	cd bench && go test -run='^$$' -bench=. -count=$(or $(COUNT),6) .

clean: ## remove what was built
	rm -rf bin
