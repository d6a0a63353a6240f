#!/usr/bin/env bash
# Runs every fuzz target of every module for FUZZTIME (default 30s), one after
# the other. What a target finds is written to its testdata/fuzz: commit it.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-30s}
found=0
while IFS=: read -r file _ line; do
	target=$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/' <<<"$line")
	echo "== fuzz: $target in ${file%/*}, $fuzztime"
	(cd "${file%/*}" && go test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" .)
	found=$((found + 1))
done < <(grep -rnE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sort)

if [ "$found" = 0 ]; then
	echo "found no fuzz target: script/fuzz.sh looks in the wrong place" >&2
	exit 1
fi
