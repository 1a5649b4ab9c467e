# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts of ci/: where things are, who runs them, how they
# report.  Every test script prints `ok NAME`, `FAIL NAME: why`, `skipped
# NAME: why` and ends with `N passed, N failed, N skipped`.
# shellcheck shell=bash
set -u
umask 022
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build
LOG=$BUILD/log
JOBS=${JOBS:-$(nproc)}
NOBODY=65534
export LC_ALL=C.UTF-8
# Root of the machine, who can become another user; root of a user namespace of
# one user cannot, and is as good as an ordinary one.
is_root() {
	local count=0 n
	[ "$(id -u)" = 0 ] || return
	while read -r _ _ n; do count=$((count + n)); done </proc/self/uid_map
	[ "$count" -gt $NOBODY ]
}
# Root's own programs (in /root) are closed to the user that the tests become.
! is_root || export PATH=/usr/bin:/bin
# An ordinary user's PATH has not the folders of ip, depmod and ldconfig.
export PATH=$PATH:/usr/sbin:/sbin
cd "$ROOT" || exit 1
mkdir -p "$LOG"
# What ci/setup unpacked for a user who may not install.
# shellcheck disable=SC1091
[ ! -f "$BUILD/env.sh" ] || . "$BUILD/env.sh"

passed=0 failed=0 skipped=0

say() { echo "$*"; }
ok() { passed=$((passed + 1)); echo "ok $*"; }
fail() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped $*"; }

# Adds up the last count line of a file; with none, one failure.
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

# Runs a step quietly; its log is kept, and its tail shown when it fails.
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

# Why a command has ended with 77: its last line `skipped: why`.
why_not() { sed -n 's/^skipped: //p' "$1" | tail -n 1; }

# As step, but 77 is that there can be no bare machine here, if it is said why.
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

# Runs what has a count of its own, and shows all but that.  77 is as in on_bare,
# and is returned.
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

# Ends ci/bare, for which no root was made, and says why.  ROOTED is yes if root
# could make one in namespaces of its own: then only an archive that does not
# answer is a reason to skip, with 77, and all else is to be seen.
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

# Names the first archive that has not what says which packages it has.
silent_archive() { # SOURCE...
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

# As step, but a success is nothing to count.
need() {
	step "$@" >"$LOG/need.$$" || { cat "$LOG/need.$$"; finish; }
	rm -f "$LOG/need.$$"
	passed=$((passed - 1))
}

# The version of the tree, and the second in which it was last committed, if
# SOURCE_DATE_EPOCH does not say another.
version() { sed -n "s/^  version: '\(.*\)',/\1/p" meson.build; }
changed() {
	[ -z "${SOURCE_DATE_EPOCH:-}" ] || { echo "$SOURCE_DATE_EPOCH"; return; }
	git -c safe.directory='*' log -1 --format=%ct 2>/dev/null ||
		stat -c %Y meson.build
}

# The newest version of glibc that anything in a folder asks for.
glibc_of() {
	find "$1" -type f \( -perm -u+x -o -name '*.so*' \) \
		-exec objdump -T {} + 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' |
		sort -uV | tail -n 1 | sed 's/GLIBC_//'
}

have() { command -v "$1" >/dev/null 2>&1; }

# The words that make a command run as an ordinary user, in drop[].  Root
# becomes uid 65534 without capabilities; nobody may gain any.
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

# A home that the user of drop[] may write, removed at the end.
user_home() {
	USER_HOME=$(mktemp -d "${TMPDIR:-/tmp}/adverb-home.XXXXXX")
	mkdir "$USER_HOME/run" "$USER_HOME/tmp"
	chmod 700 "$USER_HOME" "$USER_HOME/run"
	mkdir -p "$BUILD/results"
	if is_root; then
		chown -R $NOBODY:$NOBODY "$USER_HOME"
		chown -R $NOBODY:$NOBODY "$BUILD/results"
	fi
	trap 'rm -rf "$USER_HOME"' EXIT
}

# as_user COMMAND...: runs it as drop[] says.
as_user() {
	env HOME="$USER_HOME" TMPDIR="$USER_HOME/tmp" \
		XDG_RUNTIME_DIR="$USER_HOME/run" "${drop[@]}" "$@"
}

# The suites of tests/system, or those of these names: no module of the folder
# lib is a suite, nor is mallory.py, which runs other suites.
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

# The word before a suite: only root can be two users, or have a device wait for
# more; all others run as one without privilege.
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

# build DIR [meson options]: sets up and compiles build/DIR, of it only TARGET
# if that is set.  One at a time: the stages of ci/test that run side by side
# all ask for build/out.
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
