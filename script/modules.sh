#!/usr/bin/env bash
# Prints the folder of each module in go.work, a line each, the root first.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -m -f '{{.Dir}}' | sort
