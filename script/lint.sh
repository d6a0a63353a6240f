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

# Everything is checked before anything fails: one run shows all there is to mend.
failed=0
echo "== format (gofumpt, gci)"
"$linter" fmt --diff || failed=1
for module in $(script/modules.sh); do
	cd "$module"
	echo "== vet, tidy, lint: $module"
	go vet ./... || failed=1
	GOWORK=off go mod tidy -diff || failed=1
	"$linter" run --allow-parallel-runners ./... || failed=1
done
exit "$failed"
