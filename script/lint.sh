#!/usr/bin/env bash
# Checks formatting, vet, go.mod and the linters of .golangci.yml in every
# module. script/lint.sh --fix formats instead of complaining.
set -euo pipefail
cd "$(dirname "$0")/.."

# The linter is built from source at this version, into bin/, which git ignores.
# A release may bring new rules, so it is raised on purpose and by a commit.
version=v2.15.0
linter=$PWD/bin/golangci-lint

if ! "$linter" version 2>/dev/null | grep -qF "version ${version#v} "; then
	echo "installing golangci-lint $version into bin/ (once; some minutes)" >&2
	GOBIN=$PWD/bin GOWORK=off go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi

if [ "${1:-}" = --fix ]; then
	"$linter" fmt
	exit
fi

echo "== format (gofumpt, gci)"
"$linter" fmt --diff
for module in $(script/modules.sh); do
	cd "$module"
	echo "== vet, tidy, lint: $(go list -m -f '{{.Path}}' 2>/dev/null | head -n 1) in ${module}"
	go vet ./...
	GOWORK=off go mod tidy -diff
	"$linter" run --allow-parallel-runners ./...
done
