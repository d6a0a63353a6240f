#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks: script/setup.sh demo|test
#
# Given are bash, git and Go. The demo needs curl; the tests need a C compiler
# too, since Go's race detector is linked with one, strace, which makes a real
# fsync fail, Node with npm for the Express example, and Chromium, which looks at
# the demo's page. Whatever is there already is left alone, and nothing is asked.
set -euo pipefail

want=${1:-test}
missing=()
command -v curl >/dev/null || missing+=(curl ca-certificates)
if [ "$want" = test ]; then
	# A compiler without the C library's headers is as good as none.
	gcc -E - <<<'#include <stdlib.h>' >/dev/null 2>&1 || missing+=(gcc libc6-dev)
	command -v strace >/dev/null || missing+=(strace)
	command -v node >/dev/null || missing+=(nodejs)
	command -v npm >/dev/null || missing+=(npm)
	command -v chromium >/dev/null || missing+=(chromium)
fi

if ! command -v go >/dev/null; then
	echo "umavez needs Go 1.26 or newer: https://go.dev/doc/install" >&2
	exit 1
fi
[ ${#missing[@]} -gt 0 ] || exit 0

echo "installing: ${missing[*]}" >&2
if ! command -v apt-get >/dev/null; then
	echo "there is no apt-get here; please install these by hand: ${missing[*]}" >&2
	exit 1
fi
as_root=(env DEBIAN_FRONTEND=noninteractive)
[ "$(id -u)" = 0 ] || as_root=(sudo "${as_root[@]}") # sudo drops the environment
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
