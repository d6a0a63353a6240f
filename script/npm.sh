#!/usr/bin/env bash
# Installs what the Express example requires into its folder, as its lock file
# says, unless it is there already. The tests call it; several may at once.
set -euo pipefail
cd "$(dirname "$0")/../examples/express"

for tool in node npm; do
	if ! command -v "$tool" >/dev/null; then
		echo "the Express example needs $tool: script/setup.sh test installs it on Debian" >&2
		exit 1
	fi
done
mkdir -p node_modules
exec 9<.
flock 9
# npm writes this file last: an installation that broke off has none.
installed=node_modules/.package-lock.json
if [ ! -e "$installed" ] || [ "$installed" -ot package-lock.json ]; then
	npm ci --no-progress >&2 </dev/null
fi
