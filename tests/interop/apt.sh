# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts of tests/interop that take Debian's packages: apt[], the
# options of apt-get that leave what is installed on this machine alone.  WORK
# is their folder.
# shellcheck shell=bash disable=SC2034
apt=(-o Debug::NoLocking=1 -o APT::Install-Recommends=false
	-o APT::Sandbox::User= -o Dir::Cache="$WORK/apt/cache"
	-o Dir::State::status=/dev/null)
mkdir -p "$WORK"/apt/{lists,cache}/partial
# True if this machine has package lists of its own.
has_lists() {
	[ -n "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit \
		2>/dev/null)" ]
}
has_lists || apt+=(-o Dir::State::Lists="$WORK/apt/lists")
