#!/usr/bin/env bash
# Plays one story and stays up to be played with: a small payment API that
# charges for every request, `umavez serve` on SQLite in front of it, a client
# that gives up and tries again, and a kill -9. Ctrl-C ends it; with --once it
# ends after the story.
#
# DEMO_LISTEN, DEMO_ADMIN and DEMO_UPSTREAM move it to other addresses.
set -euo pipefail
cd "$(dirname "$0")/.."

listen=${DEMO_LISTEN:-127.0.0.1:8081}
admin=${DEMO_ADMIN:-127.0.0.1:9091}
upstream=${DEMO_UPSTREAM:-127.0.0.1:8082}

script/setup.sh demo
dir=$(mktemp -d)
pids=()
finish() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 0' INT TERM

# address LOG PID: waits until the program PID, which writes LOG, says where it
# listens.
address() {
	local alive=yes
	for _ in {1..600}; do # a busy machine is slow, and only a program that hangs waits to the end
		kill -0 "$2" 2>/dev/null || alive=
		if grep -qs '^[a-z]*: listening on http://' "$1"; then
			sed -n 's|^[a-z]*: listening on http://\([^ ]*\).*|\1|p' "$1" | tail -n 1
			return
		fi
		[ -n "$alive" ] || break
		sleep 0.1
	done
	echo "it did not start:" >&2
	cat "$1" >&2
	echo "Where a port is taken, DEMO_LISTEN, DEMO_ADMIN and DEMO_UPSTREAM name others: DEMO_LISTEN=127.0.0.1:0 script/demo.sh" >&2
	return 1
}

serve() {
	"$dir/umavez" serve --upstream "http://$upstream" --route 'POST /pagamentos' --principal none \
		--store "sqlite:$dir/umavez.db" --listen "$listen" --admin "$admin" 2>"$dir/serve.log" &
	umavez=$!
	pids+=("$umavez")
	listen=$(address "$dir/serve.log" "$umavez")
}

# pay TIMEOUT: one attempt of the payment; always the same key and body.
pay() {
	echo "   POST /pagamentos, Idempotency-Key: pedido-42, giving up after $1 s"
	curl -sS --noproxy '*' -m "$1" -i "http://$listen/pagamentos" -H 'Idempotency-Key: pedido-42' \
		-H 'Content-Type: application/json' -d '{"valor": 49.90, "cartao": "4111111111111111"}' 2>&1 |
		tr -d '\r' | grep -iE '^(HTTP|Idempotent|Idempotency-Status|curl|\{)' | sed 's/^/   | /' || true
}

echo "Building (the first time takes a minute or two) ..."
go build -o "$dir/upstream" ./examples/upstream
(cd cmd/umavez && go build -o "$dir/umavez" .)

"$dir/upstream" --listen "$upstream" --ledger "$dir/ledger" --delay 2s 2>"$dir/upstream.log" &
pids+=($!)
upstream=$(address "$dir/upstream.log" $!)
serve

echo
echo "A payment API charges for every request and answers 2 s later. umavez serve is in front of it."
echo
echo "1. The client gives up before the answer comes. It has been charged, and cannot know it:"
pay 1
echo
echo "2. It tries again with the same key, and gets the answer to its first attempt:"
pay 10
echo
echo "3. umavez is killed with kill -9 and started again on its file. A third attempt:"
{ kill -9 "$umavez" && wait "$umavez"; } 2>/dev/null || true
serve
pay 10
echo
echo "Three attempts. Charges in the API's ledger: $(wc -l <"$dir/ledger")"
sed 's/^/   | /' "$dir/ledger"

[ "${1:-}" != --once ] || exit 0
echo
echo "Still serving at http://$listen; Ctrl-C ends it."
wait
