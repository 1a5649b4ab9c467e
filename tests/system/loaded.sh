#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs N programs of the main job in a row beside two busy neighbours: no run
# may fail.  loaded.sh [--build DIR] [N]: 50 by default, 1000 nightly.
build=build/out
if [ "$1" = --build ]; then
	build=$2
	shift 2
fi
runs=${1:-50}
if ! command -v ib_write_bw >/dev/null; then
	echo "skipped loaded: ib_write_bw is not installed"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
drop="setpriv --no-new-privs"
tmp=$(mktemp -d)
chmod 755 "$tmp"
mkdir -m 700 "$tmp/run"
if [ "$(id -u)" = 0 ]; then
	drop="$drop --reuid 65534 --regid 65534 --clear-groups"
	chown 65534:65534 "$tmp" "$tmp/run"
fi

# The neighbours end with this script, and in any case by the clock.
timeout 20000 sh -c 'while :; do :; done' &
first=$!
timeout 20000 sh -c 'while :; do :; done' &
second=$!
trap 'kill $first $second 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

passed=0
failed=0
run=0
while [ "$run" -lt "$runs" ]; do
	run=$((run + 1))
	case $((run % 8)) in
	0) set -- ib_write_bw -n 1000 ;;
	1) set -- ibv_rc_pingpong -c -n 500 ;;
	2) set -- ib_send_lat -e -n 200 ;;
	3) set -- ibv_rc_pingpong -c -e -s 100000 -n 100 ;;
	4) set -- ib_read_bw -n 200 ;;
	5) set -- ib_send_bw -q 8 -n 100 ;;
	6) set -- ib_atomic_bw -n 200 ;;
	7) set -- ib_send_bw -m 1024 -s 100000 -n 100 ;;
	esac
	# shellcheck disable=SC2086  # $drop is words
	if env HOME="$tmp" XDG_RUNTIME_DIR="$tmp/run" $drop \
		"$build/tools/adverb" pair --timeout 60 -- "$@" \
		>"$tmp/out" 2>&1; then
		passed=$((passed + 1))
	else
		status=$?
		failed=$((failed + 1))
		echo "FAIL loaded run $run, $*: exit status $status"
		sed 's/^/    /' "$tmp/out"
	fi
done
[ "$failed" -gt 0 ] || echo "ok $runs runs on a loaded machine"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
