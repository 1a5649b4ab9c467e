# SPDX-License-Identifier: BSD-2-Clause
# The scripts of ci/ source this file.  It names the folders and the user who
# runs tests, and has the functions that report results.  Every test script
# prints lines `ok NAME`, `FAIL NAME: why` or `skipped NAME: why`, and ends with
# `N passed, N failed, N skipped`.
# shellcheck shell=bash
set -u
umask 022
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
LOG=$BUILD/log
JOBS=${JOBS:-$(nproc)}
NOBODY=65534
export LC_ALL=C.UTF-8
# True for root of the machine or of a user namespace with more than 65534 user IDs,
# who can become another user.  Root of a user namespace with fewer IDs counts as an
# ordinary user.
is_root() {
	local count=0 n
	[ "$(id -u)" = 0 ] || return
	while read -r _ _ n; do count=$((count + n)); done </proc/self/uid_map
	[ "$count" -gt $NOBODY ]
}
# Tests run as a user who cannot execute root's own programs (in /root).
! is_root || export PATH=/usr/bin:/bin
# An ordinary user's PATH may lack the folders of ip, depmod and ldconfig.
export PATH=$PATH:/usr/sbin:/sbin
cd "$ROOT" || exit 1
mkdir -p "$LOG"
# The paths of packages that ci/setup unpacked for a user who may not install.
# shellcheck disable=SC1091
[ ! -f "$BUILD/env.sh" ] || . "$BUILD/env.sh"

passed=0 failed=0 skipped=0

say() { echo "$*"; }
ok() { passed=$((passed + 1)); echo "ok $*"; }
fail() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped $*"; }

# count FILE NAME: adds the last line `N passed, N failed, N skipped` of FILE to
# the sums.  If there is no such line, adds one failure.
count() {
	local line
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -1)
	if [ -z "$line" ]; then
		fail "$2: it ended without a count"
		return
	fi
	# shellcheck disable=SC2086
	set -- $line
	passed=$((passed + $1))
	failed=$((failed + $3))
	skipped=$((skipped + ${5:-0}))
}

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# step NAME COMMAND...: runs a command quietly, and keeps its log; prints the
# end of the log if the command fails.
step() {
	local name=$1 log
	shift
	log=$LOG/${name//[^A-Za-z0-9._-]/_}.log
	if "$@" >"$log" 2>&1; then
		ok "$name"
	else
		fail "$name: see ${log#"$ROOT"/}"
		tail -n "${TAIL:-30}" "$log" | sed 's/^/    /'
		return 1
	fi
}

# why_not LOG: prints why a command ended with 77, from its last line `skipped:
# why`.
why_not() { sed -n 's/^skipped: //p' "$1" | tail -n 1; }

# on_bare NAME COMMAND...: runs, as step does, a command that uses ci/bare.
# Exit status 77 with a reason means that no bare root can be made here, and
# counts as skipped.
on_bare() { # NAME COMMAND...
	local name=$1 log began=$SECONDS status took why
	shift
	log=$LOG/${name//[^A-Za-z0-9._-]/_}.log
	"$@" >"$log" 2>&1 </dev/null
	status=$?
	took="$((SECONDS - began)) s"
	why=$(why_not "$log")
	case $status-${why:+why} in
	0-*)	ok "$name ($took)" ;;
	77-why)	skip "$name: $why ($took)" ;;
	*)	fail "$name: exit status $status ($took); see ${log#"$ROOT"/}"
		tail -n "${TAIL:-30}" "$log" | sed 's/^/    /' ;;
	esac
}

# Runs a command that prints a count, shows the other lines of its output, and
# adds the count to the sums.  A command that fails and counts no failure adds
# one failure.  Exit status 77 with a reason counts as skipped, and keep then
# returns 77.
keep() { # NAME COMMAND...
	local name=$1 log=$LOG/$1.log began=$SECONDS before status
	say "--- $name"
	shift
	"$@" 2>&1 | tee "$log" | grep -vE '^[0-9]+ passed, [0-9]+ failed'
	status=${PIPESTATUS[0]}
	say "    it took $((SECONDS - began)) s"
	if [ "$status" -eq 77 ] && [ -n "$(why_not "$log")" ]; then
		skip "$name: $(why_not "$log")"
		return 77
	fi
	before=$failed
	count "$log" "$name"
	[ "$status" -eq 0 ] || [ "$failed" -gt "$before" ] ||
		fail "$name: exit status $status; see ${log#"$ROOT"/}"
}

# Ends ci/bare because no root could be made, and says why.  ROOTED is yes if the
# user is root and can make namespaces.  Then ci/bare is skipped, with status 77,
# only if an archive does not answer; any other reason is an error.
no_base() { # ROOTED WHY SOURCE...: lines of apt's list
	local rooted=$1 why=$2 silent
	shift 2
	if [ "$rooted" = yes ]; then
		silent=$(silent_archive "$@") || {
			echo "ci/bare: $why, though the archive answers" >&2
			exit 1
		}
		why+="; $silent does not answer"
	fi
	echo "skipped: $why"
	exit 77
}

# Prints the URI of the first archive whose InRelease cannot be downloaded.  Returns 1
# if there is none.
silent_archive() { # SOURCE...: lines of apt's list
	local at line uri suite status=1
	at=$(mktemp -d)
	for line; do
		line=${line#deb }
		read -r uri suite _ <<<"${line#\[*\] }"
		timeout 60 /usr/lib/apt/apt-helper -o APT::Sandbox::User= \
			download-file "${uri%/}/dists/$suite/InRelease" \
			"$at/InRelease" >/dev/null 2>&1 ||
			{ echo "$uri" && status=0 && break; }
		rm -f "$at/InRelease"
	done
	rm -rf "$at"
	return $status
}

# need NAME COMMAND...: runs a command as step does, but does not count a success,
# and ends the script after a failure.
need() {
	step "$@" >"$LOG/need.$$" || { cat "$LOG/need.$$"; finish; }
	rm -f "$LOG/need.$$"
	passed=$((passed - 1))
}

# version prints the version of the tree.  changed prints the time of its last
# commit in seconds, or SOURCE_DATE_EPOCH if that is set.
version() { sed -n "s/^  version: '\(.*\)',/\1/p" meson.build; }
changed() {
	[ -z "${SOURCE_DATE_EPOCH:-}" ] || { echo "$SOURCE_DATE_EPOCH"; return; }
	git -c safe.directory='*' log -1 --format=%ct 2>/dev/null ||
		stat -c %Y meson.build
}

# glibc_of FOLDER: prints the newest version of glibc that a file there needs.
glibc_of() {
	find "$1" -type f \( -perm -u+x -o -name '*.so*' \) \
		-exec objdump -T {} + 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' |
		sort -uV | tail -n 1 | sed 's/GLIBC_//'
}

have() { command -v "$1" >/dev/null 2>&1; }

# drop[] has the words that make a command run as an ordinary user: root becomes
# uid 65534 without capabilities, and no program can gain any.
drop=()
if have setpriv; then
	drop=(setpriv --no-new-privs)
	if is_root; then
		drop+=("--reuid=$NOBODY" "--regid=$NOBODY" --clear-groups
			--inh-caps=-all)
		! "${drop[@]}" --bounding-set=-all true 2>/dev/null ||
			drop+=(--bounding-set=-all)
	fi
fi

# Makes USER_HOME and USER_RUN, which the user of drop[] may write, and removes them
# at the end.  USER_RUN is in memory, as XDG_RUNTIME_DIR usually is: on a disk, a
# broker's write may take seconds while other stages write.
user_home() {
	USER_HOME=$(mktemp -d "${TMPDIR:-/tmp}/adverb-home.XXXXXX")
	USER_RUN=$(mktemp -d /dev/shm/adverb-run.XXXXXX 2>/dev/null ||
		mktemp -d "$USER_HOME/run.XXXXXX")
	mkdir "$USER_HOME/tmp"
	chmod 700 "$USER_HOME" "$USER_RUN"
	mkdir -p "$BUILD/results"
	! is_root || chown -R $NOBODY:$NOBODY "$USER_HOME" "$USER_RUN" \
		"$BUILD/results"
	# A second signal must not end rm.
	trap 'trap "" INT TERM; rm -rf "$USER_HOME" "$USER_RUN"' EXIT
}

# as_user COMMAND...: runs a command as the user of drop[].  into[] has words that this
# script's user runs before, with which the command enters namespaces.  alone[] has such
# words, after find_alone.
into=() alone=()
as_user() {
	"${into[@]}" env HOME="$USER_HOME" TMPDIR="$USER_HOME/tmp" \
		XDG_RUNTIME_DIR="$USER_RUN" "${drop[@]}" "$@"
}

# Sets alone[] to the words that run a command in a network namespace of its own, where
# there is no other broker, if such a namespace can be made.  For an ordinary user this
# takes a user namespace, in which the user keeps the number and gets no capability.
# There uid 65534 would be everyone's number (user_namespaces(7)).
find_alone() {
	local words=(unshare -n sh -c 'ip link set lo up && exec "$@"' sh)
	is_root || words=(unshare -Un --map-current-user --keep-caps sh -c
		'ip link set lo up && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"'
		sh)
	# shellcheck disable=SC2034 # other scripts use `alone`
	[ "$(id -u)" = $NOBODY ] || ! "${words[@]}" true 2>/dev/null ||
		alone=("${words[@]}")
}

# Prints the suites of tests/system, or those with the given names.  The modules
# of the folder lib are not suites.  mallory.py is left out, too, because it runs
# other suites.
system_suites() { # [NAME...]
	local script
	for script in tests/system/*/*.py; do
		case $script in
		tests/system/lib/* | */mallory.py) continue ;;
		esac
		[ $# -gt 0 ] && [[ " $* " != *" $(basename "$script" .py) "* ]] ||
			echo "$script"
	done
}

# Prints `as_user`, by which a suite runs without privilege, or nothing for a suite
# that needs root in order to run programs of two users or to change settings of a
# device.
suite_as() { # SCRIPT
	case $1 in
	*/users.py | */sport.py | */trespass.py) ;;
	*) echo as_user ;;
	esac
}

# True if the user of drop[] can read the tree (a clone in /root is closed).
user_can_read() {
	! is_root || "${drop[@]}" test -r "$ROOT/meson.build"
}

# build DIR [meson options]: sets up and compiles build/DIR, or only TARGET if
# that is set.  A lock keeps stages of ci/test that run at once from building
# one folder at the same time.
build() {
	local dir=$BUILD/$1
	shift
	(
		flock 9 || exit
		if [ ! -f "$dir/build.ninja" ]; then
			meson setup "$@" "$dir" "$ROOT" || exit
		fi
		# shellcheck disable=SC2086
		ninja -j "$JOBS" -C "$dir" ${TARGET:-} 9>&-
	) 9>"$dir.lock"
}
