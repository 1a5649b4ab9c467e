/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/trust.h"

#include "broker/user.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_writable_by_others(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

/* Does that user own the folder of the system account?  Only root can have
 * given the folder to that user, since /run belongs to root and nobody else can
 * write there. */
static bool is_system_account(uid_t user)
{
	static const char folder[] = TRUST_FOLDER;
	struct stat above, st;
	bool good;
	int fd = open("/run", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	good = fd >= 0 && !fstat(fd, &above) && above.st_uid == 0 &&
	       !is_writable_by_others(&above) &&
	       !fstatat(fd, folder + strlen("/run/"), &st,
			AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode) && !is_writable_by_others(&st) &&
	       st.st_uid == user;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Does ADVERB_BROKER_USER name that user, by number or by a name in the
 * system's databases? */
static bool is_named(uid_t user)
{
	const char *named = secure_getenv("ADVERB_BROKER_USER");
	struct passwd entry, *found = NULL;
	char room[4096], *end;
	unsigned long number;

	if (!named || !*named)
		return false;
	errno = 0;
	number = strtoul(named, &end, 10);
	if (named[0] >= '0' && named[0] <= '9' && !*end)
		return !errno && number < UINT32_MAX && number == user;
	return !getpwnam_r(named, &entry, room, sizeof(room), &found) &&
	       found && entry.pw_uid == user;
}

bool trust_is_privileged(void)
{
	return getauxval(AT_SECURE);
}

enum trust trust_in(uid_t user)
{
	bool is_strict = trust_is_privileged() || !geteuid();

	if (user_is_nobody(user))
		return TRUST_NOT;
	if (!user || is_system_account(user))
		return TRUST_SYSTEM;
	if (is_strict)
		return TRUST_NOT;
	if (user == geteuid())
		return TRUST_OWN;
	return is_named(user) ? TRUST_NAMED : TRUST_NOT;
}

void trust_refusal(uid_t user, pid_t pid, char *text, size_t size)
{
	char process[32] = "", owner[128], note[64] = "";
	bool is_strange = user_is_nobody(user);
	bool lacks_proc = is_strange && !user_has_proc();

	if (pid > 0)
		snprintf(process, sizeof(process), " (process %d)", (int)pid);
	snprintf(owner, sizeof(owner), "user %u's", (unsigned)user);
	if (lacks_proc)
		snprintf(owner, sizeof(owner),
			 "of user %u, which may be several users, since /proc, "
			 "which would tell, is not mounted here",
			 (unsigned)user);
	else if (is_strange)
		snprintf(owner, sizeof(owner),
			 "of a user without a number in this user namespace");
	if (geteuid() && !trust_is_privileged() && !is_strange)
		snprintf(note, sizeof(note),
			 ", or trust that user: ADVERB_BROKER_USER=%u",
			 (unsigned)user);
	snprintf(text, size,
		 "the broker adverbd%s of this network namespace is %s, "
		 "who could read and change what this program sends, receives "
		 "and registers, so it is sent nothing: %shave root set up the "
		 "system's broker (adverb install --service), or use a network "
		 "namespace of your own (adverb run --private -- PROGRAM)%s",
		 process, owner,
		 lacks_proc ? "mount /proc (mount -t proc proc /proc), " : "",
		 note);
}
