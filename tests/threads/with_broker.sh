#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# with_broker.sh ADVERBD PROGRAM [ARG...]: runs PROGRAM in a network namespace
# of its own, in which ADVERBD already listens.  So PROGRAM need not start a
# broker, and the broker is killed when PROGRAM has ended.
if ! unshare -Urn true 2>/dev/null; then
	echo "skipped ${2##*/}: no user namespaces here"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/adverb-broker.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2016
XDG_RUNTIME_DIR=$dir ADVERB_EXPLAIN=0 unshare -Urn sh -c '
	ip link set lo up || exit
	broker=$1
	shift
	"$broker" --foreground --idle 3600 &
	# until the broker listens
	until grep -q " 00010000 .*@adverb" /proc/net/unix; do
		kill -0 $! || exit
	done
	"$@"
	status=$?
	kill $!
	exit $status' sh "$@"
