# SPDX-License-Identifier: BSD-2-Clause
# The scripts of tests/interop that download Debian packages set WORK to their
# folder, and source this file.  It sets apt[]: options of apt-get by which no
# package counts as installed, and apt's cache lies in WORK.
# shellcheck shell=bash disable=SC2034
apt=(-o Debug::NoLocking=1 -o APT::Install-Recommends=false
	-o APT::Sandbox::User= -o Dir::Cache="$WORK/apt/cache"
	-o Dir::State::status=/dev/null)
mkdir -p "$WORK"/apt/{lists,cache}/partial
# has_lists: true if this machine has package lists of its own.
has_lists() {
	[ -n "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit \
		2>/dev/null)" ]
}
has_lists || apt+=(-o Dir::State::Lists="$WORK/apt/lists")
