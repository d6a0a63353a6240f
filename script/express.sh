#!/usr/bin/env bash
# Runs the commands of docs/express.md, as they stand but for the ports, in a
# fresh copy of the tree, and says how long it took until the first payment was
# answered. Then it pays again with the same key, and counts the charges.
set -euo pipefail
export LC_ALL=C # seconds are read back, and some languages have a comma in them
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
pids=()
finish() {
	# Each is a process group: what a command has started goes with it.
	for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

# step N: the command of the block that the page calls so.
step() {
	awk -v mark="<!-- check: step $1 -->" '
		$0 == mark { found = 1; next }
		found && /^```/ { if (inside) exit; inside = 1; next }
		inside { print; lines++ }
		END { exit !lines }' docs/express.md
}

# address LOG: waits until the program that writes LOG says where it listens.
address() {
	for _ in {1..1200}; do # only a failure waits to the end
		if grep -q '^[a-z]*: listening on http://' "$1"; then
			sed -n 's|^[a-z]*: listening on http://\([^ ]*\).*|\1|p' "$1"
			return
		fi
		sleep 0.1
	done
	echo "it did not start:" >&2
	cat "$1" >&2
	return 1
}

# background LOG COMMAND: runs a command in a process group of its own.
background() {
	set -m
	bash -c "$2" </dev/null >"$1" 2>&1 &
	set +m
	pids+=($!)
}

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }

# The tree as it is, and nothing that it ignores: a clone that has what is not
# committed yet.
mkdir "$dir/clone"
git ls-files -z --cached --others --exclude-standard |
	tar --create --null --files-from=- --ignore-failed-read --warning=no-failed-read |
	tar --extract --directory "$dir/clone"
cd "$dir/clone"
export PORT=0 UMAVEZ_LISTEN=127.0.0.1:0 UMAVEZ_ADMIN=127.0.0.1:0

begin=$EPOCHREALTIME
build=$(step 1)
bash -euc "$build"
echo "built after $(since "$begin")"
api=$(step 2)
background "$dir/node.log" "$api"
upstream=$(address "$dir/node.log")
echo "the API started after $(since "$begin")"
serve=$(step 3)
background "$dir/umavez.log" "${serve//127.0.0.1:8082/$upstream}"
front=$(address "$dir/umavez.log")
pay=$(step 4)
pay+=" --url http://$front"
bash -euc "$pay" 2>"$dir/key"
echo "from a clone to the first protected payment: $(since "$begin")"

key=$(sed -n 's/^chave: //p' "$dir/key")
bash -euc "$pay --key $key" 2>/dev/null
echo "charges with one key: $(wc -l <ledger.jsonl)"
bash -euc "${pay//$front/$upstream} --key $key" 2>/dev/null
echo "and past umavez: $(wc -l <ledger.jsonl)"
