#!/usr/bin/env bash
# Passes all tests, with all set-up, on a fresh machine: formatting, vet and
# lint; every module's tests under the race detector; every fuzz target for
# FUZZTIME (default 30s). A package may take 20 minutes, which a busy machine needs.
# It stops at the first thing that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

script/setup.sh test
script/npm.sh
script/lint.sh
for module in $(script/modules.sh); do
	echo "== test: $module"
	(cd "$module" && CGO_ENABLED=1 go test -race -shuffle=on -count=1 -timeout=20m ./...)
done
# The race detector makes pools forget at random, so allocations are counted
# without it.
echo "== test: allocations of a first execution, a replay and a request without a key"
go test -run='^TestAllocations$' -count=1 ./umavezhttp
script/fuzz.sh
